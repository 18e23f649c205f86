// A scene of tracks as an input: for each agent its places as JSON, null where it is not there.

import { written } from "./written.js";

/** The kind of input that is a scene of tracks; what a kind is, inputs.js says. */
export const agents = written({
  noun: "scene",
  hint: "Give a scene above",
  example: "[[[0, 1], [0.5, 1]], [null, [3, 2]]]",
  how: "a list of places for each agent, step by step, null where it is not there; or drop a .json file",
  told(value) {
    try {
      const held = JSON.parse(value);
      const tracks = held.tracks ?? held;
      return `${tracks.length} agents, ${tracks[0].length} steps`;
    } catch {
      return "a scene";
    }
  },
});
