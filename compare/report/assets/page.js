"use strict";

// Figures are drawn when they come near the window, in the colours of the reader's scheme.
const templates = JSON.parse(document.getElementById("templates").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const options = { displaylogo: false, responsive: true,
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };

function draw(figure, scheme = dark.matches ? "dark" : "light") {
  const { data, layout } = JSON.parse(document.getElementById(`data-${figure.id}`).textContent);
  figure.dataset.drawn = scheme;
  for (const trace of data) if (trace.type === "heatmap" && trace.zmin >= 0) trace.reversescale = scheme === "dark";
  return Plotly.react(figure, data, { ...layout, template: templates[scheme] }, options);
}

const figures = [...document.querySelectorAll(".figure")];
const near = new IntersectionObserver(entries => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    near.unobserve(entry.target);
    draw(entry.target);
  }
}, { rootMargin: "800px" });
figures.forEach(figure => near.observe(figure));
dark.addEventListener("change", () => figures.filter(figure => figure.dataset.drawn).forEach(figure => draw(figure)));
addEventListener("beforeprint", () => figures.filter(seen).forEach(figure => draw(figure, "light")));
addEventListener("afterprint", () => figures.filter(seen).forEach(figure => draw(figure)));
function seen(figure) { return figure.offsetParent !== null; }

// One group of figures at a time.
function choose(tab) {
  for (const other of tab.parentElement.children) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", chosen);
    other.tabIndex = chosen ? 0 : -1;
    document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
  }
}
for (const tab of document.querySelectorAll("[role=tab]")) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...tab.parentElement.children];
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  });
}
document.querySelectorAll("[role=tab][aria-selected=true]").forEach(choose);

// The contents say where the reader is.
const links = new Map([...document.querySelectorAll("nav a")].map(link => [link.hash.slice(1), link]));
const read = new IntersectionObserver(entries => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    links.forEach(link => link.removeAttribute("aria-current"));
    links.get(entry.target.id).setAttribute("aria-current", "location");
  }
}, { rootMargin: "0px 0px -70% 0px" });
document.querySelectorAll("section[id]").forEach(section => { if (links.has(section.id)) read.observe(section); });

// Attention: patterns of a compiled and a learned head; pointing at a token shows where it attends.
const FULL = 255, SELECTS = 1e-3, MOST_SAID = 3;
for (const view of document.querySelectorAll(".attention-view")) {
  const shown = JSON.parse(document.getElementById("data-attention").textContent);
  const [input, pair] = view.querySelectorAll("select");
  const typed = view.querySelector("input"), refused = view.querySelector(".refused");
  const models = shown.models && { compiled: loaded(shown.models.compiled), learned: loaded(shown.models.learned) };
  const sides = [...view.querySelectorAll("figure")].map((figure, i) => ({
    name: ["compiled", "learned"][i],
    canvas: figure.querySelector("canvas"),
    tokens: figure.querySelector(".tokens"),
  }));
  const said = view.querySelector(".attention-said");
  let current = sample(0);
  const name = i => {
    const position = shown.positions[i], token = current.tokens[i];
    return position === token && !/^\d+$/.test(position) ? token : `${position}: ${token}`;
  };
  const pattern = side => current.pattern(side.name, shown.pairs[pair.value]);

  /** One of the page's own inputs. */
  function sample(i) {
    return { tokens: shown.inputs[i], pattern: (side, heads) => heads[side].patterns[i] };
  }

  /** An input that was typed: both models run in the page. */
  function computed(tokens) {
    const ids = tokens.map(token => shown.models.tokens.indexOf(token));
    const found = { compiled: attention(models.compiled, ids), learned: attention(models.learned, ids) };
    return { tokens, pattern: (side, heads) => {
      const [layer, head] = heads[side].head;
      return found[side][layer][head].map(shares => {
        const total = side === "compiled" ? shares.reduce((a, b) => a + b, 0) : 1;  // a BOS may get the rest
        return shares.map(share => total > SELECTS ? Math.round(FULL * share / total) : 0);
      });
    } };
  }

  /** What is wrong with an input; nothing, if the models take it. */
  function fault(tokens) {
    const n = shown.positions.length, unknown = tokens.find(token => !shown.models.tokens.includes(token));
    if (tokens.length !== n) return `An input has ${n} tokens; got ${tokens.length}. Still shown is the input before.`;
    return unknown === undefined ? "" : `No token is written ${unknown}. The task's tokens: ${shown.models.tokens.join(" ")}. Still shown is the input before.`;
  }

  function shadow(weight) { return `rgba(${getComputedStyle(view).getPropertyValue("--weight")}, ${weight / FULL})`; }

  function paint() {
    for (const side of sides) {
      const n = shown.positions.length, cell = 8, context = side.canvas.getContext("2d");
      side.canvas.width = side.canvas.height = n * cell;
      context.clearRect(0, 0, n * cell, n * cell);
      pattern(side).forEach((row, query) => row.forEach((weight, key) => {
        context.fillStyle = shadow(weight);
        context.fillRect(key * cell, query * cell, cell, cell);
      }));
      side.tokens.replaceChildren(...current.tokens.map((token, i) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = token;
        if (shown.positions[i] !== token || /^\d+$/.test(token)) {
          const position = document.createElement("small");
          position.textContent = shown.positions[i];
          button.append(position);
        }
        button.addEventListener("mouseenter", () => point(i));
        button.addEventListener("focus", () => point(i));
        return button;
      }));
    }
    point(shown.positions.length - 1);
  }

  function point(query) {
    const sentences = sides.map(side => {
      const row = pattern(side)[query];
      [...side.tokens.children].forEach((button, key) => {
        button.style.background = shadow(row[key]);
        button.classList.toggle("strong", row[key] > FULL / 2);
        button.classList.toggle("query", key === query);
      });
      const keys = row.map((weight, key) => [weight, key]).filter(([weight]) => weight >= FULL / 20)
        .sort((a, b) => b[0] - a[0]).slice(0, MOST_SAID);
      const to = keys.map(([weight, key]) => `${name(key)} (${(weight / FULL).toFixed(2)})`).join(", ");
      return `${side.name} attends to ${to || "nothing in the sequence"}`;
    });
    said.textContent = `From ${name(query)}: ${sentences.join("; ")}.`;
  }

  for (const side of sides) {
    side.canvas.addEventListener("mousemove", event => {
      const box = side.canvas.getBoundingClientRect(), n = shown.positions.length;
      point(Math.min(n - 1, Math.max(0, Math.floor((event.clientY - box.top) / box.height * n))));
    });
  }
  function choose(next) {
    current = next;
    if (typed) [typed.value, refused.textContent] = [current.tokens.join(shown.models.separators[0]), ""];
    paint();
  }

  input.addEventListener("change", () => choose(sample(input.value)));
  typed?.addEventListener("change", () => {
    const between = new RegExp(`[${shown.models.separators}]`);
    const tokens = typed.value.split(between).map(token => token.trim()).filter(Boolean);
    refused.textContent = fault(tokens);
    if (refused.textContent) return;
    choose(computed(tokens));
    input.selectedIndex = -1;  // any of the page's own can be chosen again
  });
  pair.addEventListener("change", paint);
  dark.addEventListener("change", paint);
  choose(sample(0));
}
