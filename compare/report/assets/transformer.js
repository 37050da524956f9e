"use strict";

// The forward pass of rasplens/model/forward.py, as far as attention needs it, for one input of a kept model.
// Rows of numbers are arrays, one a position; a weight is flat, with its shape beside it.

const LAYER_NORM_EPSILON = 1e-5, ROTARY_BASE = 10000;

/** What a model takes and computes with, from its JSON. */
function loaded(model) {
  const weights = {};
  for (const [name, { shape, data }] of Object.entries(model.weights)) {
    const bytes = Uint8Array.from(atob(data), letter => letter.charCodeAt(0));
    weights[name] = { shape, data: new Float32Array(bytes.buffer) };
  }
  return { ...model, weights };
}

/** `[layer][head][query][key]`: the attention of every head between the task's positions, on the task's ids. */
function attention(model, ids) {
  const tokens = model.rows[0].slice();
  model.places.forEach((place, i) => { tokens[place] = model.rows[ids[i]][place]; });
  const { config, weights } = model, patterns = [];
  let residual = tokens.map(token => row(weights["embed.W_E"], token));
  const positions = ["learned", "shortformer"].includes(config.positions)
    ? tokens.map((_, i) => row(weights["pos_embed.W_pos"], i)) : null;
  if (config.positions === "learned") residual = sum(residual, positions);
  for (let layer = 0; layer < config.n_layers; layer++) {
    const heads = Array.from({ length: config.n_heads }, (_, head) => attended(model, layer, head, residual, positions));
    patterns.push(heads.map(({ pattern }) => model.places.map(query => model.places.map(key => pattern[query][key]))));
    const attn = `blocks.${layer}.attn.`;
    for (const [head, { gathered }] of heads.entries()) residual = sum(residual, times(gathered, weights[`${attn}W_O`], head));
    residual = plusBias(residual, weights[`${attn}b_O`]);
    if (config.d_mlp) residual = sum(residual, mlp(model, layer, residual));
  }
  return patterns;
}

function attended(model, layer, head, residual, positions) {
  const { config, weights, mask } = model, attn = `blocks.${layer}.attn.`;
  const read = normalized(model, `blocks.${layer}.ln1`, residual);
  const beside = config.positions === "shortformer" ? sum(read, positions) : read;
  const project = (letter, rows) => plusBias(times(rows, weights[`${attn}W_${letter}`], head), weights[`${attn}b_${letter}`], head);
  let query = project("Q", beside), key = project("K", beside);
  const value = project("V", read);
  if (config.positions === "sinusoidal_qk") {
    const waves = sinusoids(query.length, config.n_heads * config.d_head);
    const own = waves.map(wave => wave.slice(head * config.d_head, (head + 1) * config.d_head));
    query = sum(query, own);
    key = sum(key, own);
  }
  if (config.smeared_keys) key = smeared(key, row(weights[`${attn}smear`], head));
  if (config.positions === "rotary") [query, key] = [query, key].map(rows => rotated(rows, config.rotary_dim));
  const pattern = query.map((one, q) => softmax(key.map((other, k) => mask[layer][q][k] ? dot(one, other) / config.attn_scale : -Infinity)));
  const gathered = pattern.map(shares => value[0].map((_, j) => shares.reduce((total, share, k) => total + share * value[k][j], 0)));
  return { pattern, gathered };
}

function mlp(model, layer, residual) {
  const { config, weights } = model, name = `blocks.${layer}.mlp.`;
  const read = normalized(model, `blocks.${layer}.ln2`, residual);
  const before = plusBias(times(read, weights[`${name}W_in`]), weights[`${name}b_in`]);
  const after = before.map(neurons => neurons.map(ACTIVATIONS[config.activation]));
  return plusBias(times(after, weights[`${name}W_out`]), weights[`${name}b_out`]);
}

const ACTIVATIONS = {
  relu: x => Math.max(x, 0),
  silu: x => x / (1 + Math.exp(-x)),
  gelu: x => x * (1 + erf(x / Math.SQRT2)) / 2,
  gelu_new: x => x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))) / 2,
};

/** The error function, to 1.5e-7 (Abramowitz and Stegun 1964, formula 7.1.26). */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const powers = [0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429];
  return Math.sign(x) * (1 - powers.reduceRight((total, power) => (total + power) * t, 0) * Math.exp(-x * x));
}

function normalized({ config, weights }, name, rows) {
  if (config.normalization === "none") return rows;
  const { data: scale } = weights[`${name}.w`] ?? {}, { data: shift } = weights[`${name}.b`] ?? {};
  return rows.map(one => {
    const mean = one.reduce((total, x) => total + x, 0) / one.length;
    const centred = one.map(x => x - mean);
    const size = Math.sqrt(dot(centred, centred) / one.length + LAYER_NORM_EPSILON);
    return centred.map((x, i) => config.normalization === "LN" ? x / size * scale[i] + shift[i] : x / size);
  });
}

function smeared(keys, smear) {
  return keys.map((key, i) => {
    const share = 1 / (1 + Math.exp(-smear[i]));
    return i ? key.map((x, j) => (1 - share) * x + share * keys[i - 1][j]) : key;
  });
}

function rotated(rows, width) {
  const pairs = width / 2;
  return rows.map((one, position) => one.map((x, i) => {
    if (i >= width) return x;
    const angle = position / ROTARY_BASE ** (i % pairs * 2 / width);
    return i < pairs ? x * Math.cos(angle) - one[i + pairs] * Math.sin(angle)
      : x * Math.cos(angle) + one[i - pairs] * Math.sin(angle);
  }));
}

function sinusoids(n, width) {
  return Array.from({ length: n }, (_, position) => Array.from({ length: width }, (_, column) => {
    const angle = position / 10000 ** (Math.floor(column / 2) * 2 / width);
    return column % 2 ? Math.cos(angle) : Math.sin(angle);
  }));
}

/** Softmax; of a row that sees nothing, zeros. */
function softmax(scores) {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0);
  const exponents = scores.map(score => Math.exp(score - top)), total = exponents.reduce((a, b) => a + b, 0);
  return exponents.map(one => one / total);
}

function row({ shape, data }, index) {
  const width = shape.at(-1);
  return Array.from(data.subarray(index * width, (index + 1) * width));
}

/** Rows times a matrix `[input, output]`, or times that of one head. */
function times(rows, { shape, data }, head = 0) {
  const [inputs, outputs] = shape.slice(-2), start = head * inputs * outputs;
  return rows.map(one => {
    const found = new Array(outputs).fill(0);
    one.forEach((x, i) => { if (x) for (let j = 0; j < outputs; j++) found[j] += x * data[start + i * outputs + j]; });
    return found;
  });
}

function plusBias(rows, bias, head = 0) {
  if (!bias) return rows;
  const own = row(bias, head);
  return rows.map(one => one.map((x, j) => x + own[j]));
}

function sum(rows, others) { return rows.map((one, i) => one.map((x, j) => x + others[i][j])); }

function dot(one, other) { return one.reduce((total, x, i) => total + x * other[i], 0); }
