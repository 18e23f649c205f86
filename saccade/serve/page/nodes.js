// A graph as an input: its nodes and edges as JSON.

import { written } from "./written.js";

/** The kind of input that is a graph; what a kind is, inputs.js says. */
export const nodes = written({
  noun: "graph",
  hint: "Give a graph above",
  example: '{"nodes": [[1], [1], [1]], "edges": [[0, 1], [1, 2]]}',
  how: "nodes with their numbers, edges as pairs from 0; or drop a .json file",
  told(value) {
    try {
      const { nodes: some, edges } = JSON.parse(value);
      return `${some.length} nodes, ${edges.length} edges`;
    } catch {
      return "a graph";
    }
  },
});
