// A side that is a scene of tracks: its agents are buttons where they were seen last, with the ways they came and the
// futures that are told of them, the stronger the likelier. Whom an agent looks at is drawn as lines, as in a graph.

import { draw } from "./element.js";
import { graph, inside } from "./graph.js";

const LEAST = 0.02; // the probability from which a future is drawn

/** The agents of a scene; what a kind of side is, sides.js says. */
export const tracks = {
  ...graph,

  side(side, buttons, about) {
    const made = graph.side(side, buttons, about);
    const ways = draw("g", { class: "ways" });
    side.tracks.forEach((track) => ways.append(...came(track)));
    (side.futures ?? []).forEach((future, agent) => ways.append(...goes(future, side.tokens[agent])));
    made.root.querySelector("svg").prepend(ways);
    return made;
  },
};

// The way an agent came, in parts where it was not seen all the while.
function came(track) {
  const parts = [[]];
  for (const place of track) {
    if (place) parts.at(-1).push(place);
    else parts.push([]);
  }
  return parts.filter((part) => part.length > 1).map((part) => path(part, "came", 1));
}

// The futures of an agent, the likeliest last, so that it lies above the others.
function goes(future, { place }) {
  if (!future || !place) return [];
  const ways = future.ways.map((way, i) => [way, future.probabilities[i], i === 0]);
  return ways.filter(([, share, first]) => first || share >= LEAST).reverse().flatMap(([way, share, first]) => {
    const made = path([place, ...way], first ? "goes first" : "goes", first ? 1 : 0.15 + 0.85 * share);
    made.append(draw("title", {}, `${Math.round(100 * share)} %`));
    return [made];
  });
}

function path(places, name, opacity) {
  const points = places.map((place) => inside(place).join(",")).join(" ");
  return draw("polyline", { points, class: name, opacity });
}
