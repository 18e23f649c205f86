// Colour scales, built in OKLab so that equal steps of a value are equal steps for the eye, and lightness alone tells
// them apart, whatever the reader's colour vision. (Ottosson 2020, "A perceptual color space for image processing".)

const STEPS = 256;
const SCALES = new Map();

// A path through the colour solid: lightness, chroma and hue (degrees) at t from 0 to 1. Zero is near the paper.
const PATHS = {
  light: (t) => [0.985 - 0.715 * t, 0.15 * (1 - (1 - t) ** 2.5), 118 + 157 * t ** 0.62],
  dark: (t) => [0.215 + 0.735 * t, 0.015 + 0.135 * Math.sin(Math.PI * t ** 0.75) + 0.1 * t ** 2, 275 - 172 * t ** 0.9],
};
const SIDES = {
  light: (t, hue) => [0.975 - 0.475 * t, 0.19 * t ** 0.85, hue],
  dark: (t, hue) => [0.225 + 0.575 * t, 0.17 * t ** 0.85, hue],
};

/** 256 colours (3 bytes each) from nothing to the most, for a theme. */
export function sequential(theme) {
  return remember(`sequential ${theme}`, () => even(PATHS[theme], STEPS));
}

/** 256 colours from the most negative (blue) over nothing (paper) to the most positive (orange). */
export function diverging(theme) {
  return remember(`diverging ${theme}`, () => {
    const half = STEPS / 2;
    const cold = even((t) => SIDES[theme](t, 255), half);
    const warm = even((t) => SIDES[theme](t, 55), half);
    const all = new Uint8Array(STEPS * 3);
    for (let i = 0; i < half; i++) {
      all.set(cold.subarray(3 * (half - 1 - i), 3 * (half - i)), 3 * i);
      all.set(warm.subarray(3 * i, 3 * i + 3), 3 * (half + i));
    }
    return all;
  });
}

/** The place of a value on a scale, 0 to 255; signed values have their nothing in the middle. */
export function place(value, top, signed) {
  if (!(top > 0)) return signed ? STEPS / 2 : 0;
  const share = signed ? (value / top + 1) / 2 : value / top;
  return Math.max(0, Math.min(STEPS - 1, Math.round(share * (STEPS - 1))));
}

/** One colour of a scale as CSS, and the ink that can be read on it. */
export function pick(scale, index) {
  const [red, green, blue] = scale.subarray(3 * index, 3 * index + 3);
  const luminance = [red, green, blue].reduce((sum, byte, i) => sum + linear(byte) * LUMINANCE[i], 0);
  return { paper: `rgb(${red} ${green} ${blue})`, ink: luminance > 0.18 ? "#0d1117" : "#ffffff" };
}

/** The paper behind a token: the less probable it was, the warmer. Text stays readable on all of it, in both themes;
 * CSS chooses between them, so that ink and paper change at once. */
export function tint(probability) {
  const doubt = (1 - Math.max(0, Math.min(1, probability))) ** 0.8;
  const light = [0.975 - 0.135 * doubt, 0.125 * doubt, 68];
  const dark = [0.27 + 0.16 * doubt, 0.01 + 0.095 * doubt, 62];
  return `light-dark(rgb(${bytes(light).join(" ")}), rgb(${bytes(dark).join(" ")}))`;
}

/** A scale laid out as a strip, for a legend. */
export function strip(canvas, scale) {
  const context = canvas.getContext("2d");
  canvas.width = STEPS;
  canvas.height = 1;
  const image = context.createImageData(STEPS, 1);
  for (let i = 0; i < STEPS; i++) image.data.set([...scale.subarray(3 * i, 3 * i + 3), 255], 4 * i);
  context.putImageData(image, 0, 0);
}

const LUMINANCE = [0.2126, 0.7152, 0.0722];

function remember(name, build) {
  if (!SCALES.has(name)) SCALES.set(name, build());
  return SCALES.get(name);
}

// Walks along a path finely and takes colours at equal distances.
function even(path, count) {
  const points = Array.from({ length: 513 }, (_, i) => within(path(i / 512)));
  const way = [0];
  for (let i = 1; i < points.length; i++) way.push(way[i - 1] + distance(points[i], points[i - 1]));
  const colours = new Uint8Array(count * 3);
  for (let i = 0, at = 0; i < count; i++) {
    const goal = (way.at(-1) * i) / (count - 1);
    while (at < way.length - 1 && way[at] < goal) at++;
    colours.set(bytes(points[at]), 3 * i);
  }
  return colours;
}

function distance(one, other) {
  const [a, b] = [one, other].map(([L, C, h]) => [L, C * Math.cos(h * RADIAN), C * Math.sin(h * RADIAN)]);
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

// The same lightness and hue with as much chroma as a screen can show.
function within([L, C, h]) {
  let [low, high] = [0, C];
  if (shown([L, C, h])) return [L, C, h];
  for (let i = 0; i < 20; i++) {
    const middle = (low + high) / 2;
    if (shown([L, middle, h])) low = middle;
    else high = middle;
  }
  return [L, low, h];
}

const RADIAN = Math.PI / 180;

function linearised([L, C, h]) {
  const [a, b] = [C * Math.cos(h * RADIAN), C * Math.sin(h * RADIAN)];
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
}

function shown(colour) {
  return linearised(colour).every((part) => part >= -1e-6 && part <= 1 + 1e-6);
}

function bytes(colour) {
  return linearised(within(colour)).map((part) => {
    const inside = Math.max(0, Math.min(1, part));
    const value = inside <= 0.0031308 ? 12.92 * inside : 1.055 * inside ** (1 / 2.4) - 0.055;
    return Math.round(value * 255);
  });
}

function linear(byte) {
  const value = byte / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}
