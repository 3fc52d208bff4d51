// Tables by Tabulator and charts by Observable Plot, from values that a page's own script hands over.
// Every text is put in as a text node: names, sources and messages of others never become HTML.
"use strict";

const PASSNET = (() => {
  const values = new Map();
  const MISSING = "–";
  const narrow = window.matchMedia("(max-width: 44rem)");

  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined && text !== null) element.textContent = text;
    return element;
  };

  // A name may break after the signs that part its words.
  const named = (tag, text) => {
    const element = make(tag);
    for (const part of String(text).split(/(?<=[_/-])/)) element.append(part, make("wbr"));
    return element;
  };

  // Only pages of this site are linked to, by paths from where a page lies.
  const isOwn = (target) => /^((\.\.\/)*[\w][\w./-]*)?(#[\w-]+)?$/.test(target);

  const tagsOf = (texts) => {
    const box = make("span", "tags");
    for (const text of texts ?? []) box.append(make("span", `tag ${/^\w+$/.test(text) ? text : ""}`, text));
    return box;
  };

  const link = ([words, target, tags]) => {
    const name = named(target && isOwn(target) ? "a" : "span", words);
    if (name.tagName === "A") name.href = target;
    if (!tags || !tags.length) return name;
    const box = make("span", "named");
    box.append(name, tagsOf(tags));
    return box;
  };

  const number = (value, digits) => {
    if (value === null || value === undefined) return MISSING;
    if (typeof value === "string") return value;
    const fixed = Number.isInteger(value) && digits === 0 ? String(value) : value.toFixed(digits);
    const [whole, part] = fixed.split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
    return part === undefined ? grouped : `${grouped}.${part}`;
  };

  const order = (value) => {
    if (value === null || value === undefined) return null;
    if (typeof value === "number") return value;
    const parsed = Number.parseFloat(String(value).replaceAll(",", ""));
    return Number.isNaN(parsed) ? null : parsed;
  };

  // ---- bars of intervals, on one logarithmic scale for a column

  const scaleOf = (triples) => {
    const bounds = triples.flatMap((each) => (each ? [each[1] ?? each[0], each[2] ?? each[0]] : []))
      .filter((each) => each > 0);
    let low = Math.min(0.8, ...bounds), high = Math.max(1.25, ...bounds);
    low = Math.max(low * 0.97, 0.05);
    high = Math.min(high * 1.03, 200);
    const span = Math.log(high) - Math.log(low);
    const scale = (value) => Math.min(1, Math.max(0, (Math.log(value) - Math.log(low)) / span)) * 100;
    const steps = high / low > 40 ? [0.1, 1, 10, 100] : high / low > 12 ? [0.1, 0.3, 1, 3, 10, 30, 100] : high / low > 3 ? [0.25, 0.5, 1, 2, 4, 8] : [0.6, 0.8, 1, 1.25, 1.5, 2];
    scale.ticks = steps.filter((value) => value >= low && value <= high);
    return scale;
  };

  const axis = (scale) => {
    const line = make("span", "axis");
    line.setAttribute("aria-hidden", "true");
    for (const value of scale.ticks) {
      const tick = make("span", "tick", String(value));
      tick.style.left = `${scale(value)}%`;
      line.append(tick);
    }
    return line;
  };

  const bar = (triple, scale) => {
    const box = make("span", "bar");
    for (const value of scale.ticks) {
      const line = make("span", value === 1 ? "one" : "other");
      line.style.left = `${scale(value)}%`;
      box.append(line);
    }
    if (triple && triple[0] > 0) {
      const [value, low, high] = triple;
      const side = low > 1 ? "faster" : high < 1 ? "slower" : "even";
      if (low > 0 && high > 0) {
        const range = make("span", `range ${side}`);
        range.style.left = `${scale(low)}%`;
        range.style.width = `${Math.max(0.6, scale(high) - scale(low))}%`;
        box.append(range);
      }
      const dot = make("span", `dot ${side}`);
      dot.style.left = `${scale(value)}%`;
      box.append(dot);
      box.title = low ? `${low.toFixed(3)} to ${high.toFixed(3)}` : "";
    }
    return box;
  };

  const speedup = (triple, column) => {
    const cell = make("span", "speedup");
    cell.append(make("span", "value", triple ? number(triple[0], column.digits) : MISSING));
    cell.append(bar(triple, column.scale));
    if (triple && triple[1]) {
      const text = `${number(triple[1], 2)} – ${number(triple[2], 2)}`;
      cell.append(make("span", "bounds", text));
    }
    return cell;
  };

  // ---- tables

  const KINDS = {
    text: (value) => named("span", isKnown(value) ? value : MISSING),
    code: (value) => make("code", "", value ?? ""),
    link: (value) => (value ? link(value) : make("span", "", "")),
    number: (value, column) => make("span", "", number(value, column.digits)),
    percent: (value) => make("span", "", value === null ? MISSING : (100 * value).toFixed(1)),
    speedup,
    tags: tagsOf,
  };

  const NUMERIC = new Set(["number", "percent", "speedup"]);

  const textOf = (value) => (Array.isArray(value) ? value.join(" ") : String(value ?? ""));

  const sorter = (kind) => (a, b, rowA, rowB, column, direction) => {
    const pick = (value) => {
      if (kind === "speedup") return value ? value[0] : null;
      if (NUMERIC.has(kind)) return order(value);
      return kind === "link" ? (value ? value[0] : null) : textOf(value);
    };
    const [first, second] = [pick(a), pick(b)];
    if (first === null || second === null) {  // what is missing comes last in both directions
      const last = (first === null) - (second === null);
      return direction === "asc" ? last : -last;
    }
    return typeof first === "number" ? first - second : first.localeCompare(second, "en", { numeric: true });
  };

  const rowsOf = (spec) => {
    const columns = spec.columns.map((column) =>
      column.levels ? column.values.map((index) => column.levels[index]) : column.values);
    const count = columns.length ? columns[0].length : 0;
    return Array.from({ length: count }, (_, index) => {
      const row = { id: index };
      columns.forEach((column, position) => { row[`c${position}`] = column[index]; });
      return row;
    });
  };

  const head = (column) => () => {
    const title = make("span", "head", column.title);
    if (column.hint) title.title = column.hint;
    if (column.kind !== "speedup") return title;
    const box = make("span", "speedup heading");
    box.append(title, axis(column.scale));
    return box;
  };

  const isKnown = (value) => ![null, undefined, "", MISSING, "unknown"].includes(value);

  // A column without a single known value is left out.
  const isShown = (column) => !(column.wide && narrow.matches)
    && (column.levels ?? column.values).some(isKnown);

  const columnOf = (column, position) => ({
    title: `c${position}`,
    field: `c${position}`,
    titleFormatter: head(column),
    formatter: (cell) => KINDS[column.kind](cell.getValue(), column),
    sorter: sorter(column.kind),
    headerSortStartingDir: NUMERIC.has(column.kind) ? "desc" : "asc",
    hozAlign: column.kind === "number" || column.kind === "percent" ? "right" : "left",
    headerHozAlign: column.kind === "number" || column.kind === "percent" ? "right" : "left",
    cssClass: `kind-${column.kind}`,
    visible: isShown(column),
    ...(column.width ? { width: narrow.matches ? Math.min(column.width, 96) : column.width } : {}),
    widthGrow: column.grow || (column.kind === "speedup" ? 3 : position === 0 ? 2 : 1),
    minWidth: column.least ?? (column.kind === "speedup" ? (narrow.matches ? 146 : 290) : position === 0 ? (narrow.matches ? 116 : 190) : 60),
  });

  // Heads are reached and sorted by keys as well.
  const withKeys = (table) => {
    for (const column of table.getColumns()) {
      const element = column.getElement();
      element.tabIndex = 0;
      element.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        const [current] = table.getSorters();
        const isSame = current && current.field === column.getField();
        const first = column.getDefinition().headerSortStartingDir;
        const other = { asc: "desc", desc: "asc" };
        table.setSort(column.getField(), isSame ? other[current.dir] : first);
      });
    }
  };

  const buildTable = (element, spec) => {
    for (const column of spec.columns) {
      if (column.kind === "speedup") column.scale = scaleOf(column.values ?? []);
    }
    const rows = rowsOf(spec);
    if (!rows.length) {
      element.append(make("p", "quiet", "None."));
      return null;
    }
    const options = {
      data: rows,
      columns: spec.columns.map(columnOf),
      layout: "fitColumns",
      movableColumns: false,
      headerSortClickElement: "header",
      placeholder: "Nothing fits these filters.",
      initialSort: spec.sort ? [{ column: `c${spec.sort[0]}`, dir: spec.sort[1] ? "desc" : "asc" }] : [],
    };
    const isLong = spec.height && rows.length > 40;
    if (isLong) options.height = spec.height;
    else options.renderVertical = "basic";
    const holder = make("div", isLong ? "grid long" : "grid");
    element.append(holder);
    const table = new Tabulator(holder, options);
    table.on("tableBuilt", () => {
      withKeys(table);
      // The part that scrolls takes keys, so it is what a grid's rows belong to.
      holder.querySelector(".tabulator-tableholder").setAttribute("role", "rowgroup");
      holder.querySelector(".tabulator-table").setAttribute("role", "presentation");
      holder.removeAttribute("aria-owns");
      holder.dataset.ready = "true";
    });
    addFilters(element, holder, table, spec, rows);
    let late = 0;
    narrow.addEventListener("change", () => {
      clearTimeout(late);
      late = setTimeout(() => {
        if (!holder.isConnected) return;
        spec.columns.forEach((column, position) => {
          if (column.wide) table[isShown(column) ? "showColumn" : "hideColumn"](`c${position}`);
        });
        table.redraw(true);
      }, 120);
    });
    return table;
  };

  const addFilters = (element, holder, table, spec, rows) => {
    const chosen = new Map();
    const searched = spec.columns.flatMap((column, index) => (column.filter === "words" ? [`c${index}`] : []));
    const choices = spec.columns.flatMap((column, index) => (column.filter === "choice" ? [index] : []));
    if (!searched.length && !choices.length) return;
    const form = make("form", "filters");
    form.addEventListener("submit", (event) => event.preventDefault());
    const status = make("p", "status quiet");
    status.setAttribute("role", "status");
    const say = (count) => {
      const total = number(rows.length, 0);
      status.textContent = count === rows.length ? `${total} rows` : `${number(count, 0)} of ${total} rows`;
    };
    let words = "";
    const apply = () => {
      table.setFilter((row) => {
        for (const [field, text] of chosen) {
          const value = row[field];
          if (Array.isArray(value) ? !value.includes(text) : String(value) !== text) return false;
        }
        return !words || searched.some((field) => textOf(row[field]).toLowerCase().includes(words));
      });
    };
    if (searched.length) {
      const label = make("label", "search", "Search ");
      const input = make("input");
      input.type = "search";
      input.addEventListener("input", () => { words = input.value.trim().toLowerCase(); apply(); });
      label.append(input);
      form.append(label);
    }
    for (const index of choices) {
      const field = `c${index}`;
      const counts = new Map();
      for (const row of rows) {
        for (const text of Array.isArray(row[field]) ? row[field] : [row[field]]) {
          if (!isKnown(text)) continue;
          counts.set(String(text), (counts.get(String(text)) ?? 0) + 1);
        }
      }
      if (counts.size < 2) continue;
      const select = make("select");
      select.name = spec.columns[index].title;
      fillSelect(select, [...counts.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true })));
      select.addEventListener("change", () => {
        if (select.selectedIndex === 0) chosen.delete(field);
        else chosen.set(field, select.value);
        apply();
      });
      const label = make("label", "", `${spec.columns[index].title} `);
      label.append(select);
      form.append(label);
    }
    table.on("dataFiltered", (filters, found) => say(found.length));
    say(rows.length);
    element.insertBefore(form, holder);
    element.insertBefore(status, holder);
  };

  const fillSelect = (select, names) => {
    const kept = select.value;
    select.replaceChildren();
    const all = make("option", "", "all");
    all.value = "";
    select.append(all);
    for (const name of names) {
      const option = make("option", "", name);
      option.value = name;
      select.append(option);
    }
    if (names.includes(kept)) select.value = kept;
  };

  // ---- charts

  const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "times", "wye", "plus"];
  const DASHES = ["", "6 3", "2 2", "8 3 2 3", "1 3", "10 4", "4 2 1 2", "3 6"];
  const colour = (index) => `var(--series-${index % 8})`;
  const plain = (value) => (value === 0 ? "0" : String(Number(value.toPrecision(3))));

  // Round numbers within bounds, for the ticks of a logarithmic axis.
  const rounds = ([low, high]) => {
    const steps = high / low > 300 ? [1] : high / low > 30 ? [1, 3] : high / low > 6 ? [1, 2, 5] : high / low > 2 ? [1, 1.5, 2, 3, 5, 7] : [1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
    const found = [];
    for (let power = -6; power <= 9; power += 1) {
      for (const step of steps) {
        const value = Number((step * 10 ** power).toPrecision(6));
        if (value >= low && value <= high) found.push(value);
      }
    }
    return found;
  };

  const legend = (series) => {
    const list = make("ul", "legend");
    series.forEach((each, index) => {
      const item = make("li");
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("width", "34");
      svg.setAttribute("height", "12");
      svg.setAttribute("aria-hidden", "true");
      const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      for (const [name, value] of Object.entries({ x1: 1, x2: 33, y1: 6, y2: 6, stroke: colour(index),
        "stroke-width": 2.5, "stroke-dasharray": DASHES[index % 8] })) line.setAttribute(name, value);
      svg.append(line);
      const mark = document.createElementNS("http://www.w3.org/2000/svg", "path");
      mark.setAttribute("d", d3.symbol(Plot.symbols?.[index] ?? d3.symbolsFill[index % 7], 34)());
      mark.setAttribute("transform", "translate(17,6)");
      mark.setAttribute("fill", colour(index));
      svg.append(mark);
      item.append(svg, make("span", "", each.name));
      list.append(item);
    });
    return list;
  };

  const lines = (spec, width) => {
    const marks = [];
    if (spec.rule !== undefined && spec.rule !== null) {
      marks.push(Plot.ruleY([spec.rule], { stroke: "var(--quiet)", strokeDasharray: "2 3" }));
    }
    if (spec.ruleX) marks.push(Plot.ruleX([spec.ruleX], { stroke: "var(--quiet)", strokeDasharray: "2 3" }));
    spec.series.forEach((each, index) => {
      const points = each.points.map(([x, y, low, high]) => ({ x, y, low, high }));
      if (points.some((point) => point.low > 0)) {
        marks.push(Plot.areaY(points.filter((point) => point.low > 0),
          { x: "x", y1: "low", y2: "high", fill: colour(index), fillOpacity: 0.13 }));
      }
      marks.push(Plot.line(points, { x: "x", y: "y", stroke: colour(index), strokeWidth: 2,
        strokeDasharray: DASHES[index % 8], curve: spec.curve ?? "linear" }));
      if (spec.markers) {
        marks.push(Plot.dot(points, { x: "x", y: "y", fill: colour(index), r: 3.2,
          symbol: d3.symbolsFill[index % 7] }));
      }
    });
    const tips = spec.series.flatMap((each) =>
      each.points.map(([x, y]) => ({ x, y, text: `${each.name}\n${spec.x.label} ${plain(x)}, ${spec.y.label} ${plain(y)}` })));
    if (tips.length < 4000) {
      marks.push(Plot.tip(tips, Plot.pointer({ x: "x", y: "y", title: "text", fill: "var(--panel)", stroke: "var(--line)" })));
    }
    const bounds = spec.series.flatMap((each) => each.points.flatMap(([, y, low, high]) => [y, low ?? y, high ?? y]));
    const around = [Math.min(0.9, ...bounds) * 0.95, Math.max(1.1, ...bounds) * 1.05];
    if (spec.y.log && !spec.y.domain) spec.y.domain = around;
    const scale = (axis) => ({ label: axis.label, grid: true, ...(axis.log ? { type: "log", tickFormat: plain, ticks: rounds(axis.domain) } : {}),
      ...(axis.domain ? { domain: axis.domain, clamp: true } : {}), ...(axis.integer ? { tickFormat: "d", interval: 1 } : {}), ...(axis.percent ? { percent: true } : {}) });
    return Plot.plot({ className: "plot", width, height: Math.min(340, Math.max(240, width * 0.55)),
      marginLeft: 48, marginBottom: 38, x: scale(spec.x), y: scale(spec.y), marks });
  };

  const bars = (spec, width) => {
    const data = spec.labels.map((label, index) => ({ label, value: spec.values[index] }));
    const order = spec.labels;
    if (spec.horizontal) {
      const longest = Math.max(...order.map((label) => label.length));
      return Plot.plot({ className: "plot", width, height: 26 + 40 + 17 * data.length,
        marginLeft: Math.min(width * 0.45, 12 + 6.1 * longest), marginBottom: 36,
        x: { label: spec.label, grid: true, nice: true, ticks: Math.max(2, width / 120) }, y: { domain: order, label: null, tickSize: 0 },
        marks: [Plot.barX(data, { x: "value", y: "label", fill: "var(--series-0)", rx: 2 })] });
    }
    return Plot.plot({ className: "plot", width, height: 280, marginLeft: 56, marginBottom: 62,
      x: { domain: order, label: spec.xLabel, tickRotate: -40 },
      y: { label: spec.label, grid: true, type: "log", domain: [0.7, Math.max(...spec.values) * 1.3], tickFormat: plain, ticks: 5 },
      marks: [Plot.barY(data, { x: "label", y1: 0.7, y2: "value", fill: "var(--series-0)", rx: 2 })] });
  };

  const curve = (spec, width) => {
    const points = spec.points.map(([x, y, isRight]) => ({ x, y, isRight }));
    const best = spec.best.map(([x, y]) => ({ x, y }));
    const scored = points.filter((point) => point.y !== null);
    const domain = [Math.min(0.8, ...scored.map((p) => p.y)) * 0.95, Math.max(1.25, ...scored.map((p) => p.y)) * 1.05];
    return Plot.plot({ className: "plot", width, height: Math.min(320, Math.max(220, width * 0.4)),
      marginLeft: 48, marginBottom: 38,
      x: { label: "evaluation", domain: [Math.min(-0.5, ...points.map((p) => p.x)), Math.max(0.5, ...points.map((p) => p.x + 0.5))], ticks: Math.min(points.length, 12), tickFormat: "d" },
      y: { label: "AS", grid: true, type: "log", tickFormat: plain, ticks: rounds(domain), domain },
      marks: [Plot.ruleY([1], { stroke: "var(--quiet)", strokeDasharray: "2 3" }),
        Plot.line(best.filter((p) => p.y !== null), { x: "x", y: "y", stroke: "var(--series-0)", strokeWidth: 2, curve: "step-after" }),
        Plot.dot(scored.filter((p) => p.isRight), { x: "x", y: "y", fill: "var(--series-0)", r: 4 }),
        Plot.dot(scored.filter((p) => !p.isRight), { x: "x", y: "y", stroke: "var(--series-1)", strokeWidth: 2, symbol: "times", r: 5 })] });
  };

  const CHARTS = { lines, bars, curve };

  const buildChart = (element, spec) => {
    let width = 0;
    const draw = () => {
      const now = Math.floor(element.clientWidth);
      if (now === width || now < 60) return;
      width = now;
      const drawn = [CHARTS[spec.kind](spec, width)];
      if (spec.series && spec.series.length > 1) drawn.push(legend(spec.series));
      for (const part of drawn[0].querySelectorAll("[aria-label]")) part.removeAttribute("aria-label");
      element.replaceChildren(...drawn);
    };
    draw();
    new ResizeObserver(() => requestAnimationFrame(draw)).observe(element);
  };

  // ---- parts of a page that are fetched when they are asked for

  const withChunks = () => {
    for (const button of document.querySelectorAll("[data-chunk]")) {
      button.addEventListener("click", () => {
        const name = button.dataset.chunk;
        const tag = document.createElement("script");
        tag.src = `${name}.js`;
        tag.addEventListener("load", () => {
          const cut = document.querySelector(`[data-cut="${name}"]`);
          cut.textContent = values.get(name);
          cut.closest("details").open = true;
          button.remove();
        });
        document.head.append(tag);
      });
    }
  };

  const start = () => {
    for (const element of document.querySelectorAll("[data-table]")) {
      const spec = values.get(element.dataset.table);
      if (spec) buildTable(element, spec);
    }
    for (const element of document.querySelectorAll("[data-chart]")) {
      const spec = values.get(element.dataset.chart);
      if (spec) buildChart(element, spec);
      else element.closest("figure").remove();
    }
    withChunks();
    document.documentElement.dataset.ready = "true";
  };

  return {
    put: (name, value) => values.set(name, value),
    get: (name) => values.get(name),
    make, number, link, buildTable, fillSelect, rowsOf, scaleOf, start, narrow,
  };
})();
