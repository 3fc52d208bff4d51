// The leaderboard: a table for each board, whose scores are those of the graphs that are chosen.
"use strict";

PASSNET.leaderboard = () => {
  const { make, fillSelect } = PASSNET;
  const boards = PASSNET.get("boards");
  const form = document.querySelector('[data-filters="boards"]');
  if (!boards || !form) return;
  const status = document.querySelector('[data-status="boards"]');
  const DIMENSIONS = ["dtype", "ops", "domain"];
  const OF_BOARD = ["suite", "device", "hardware"];
  const sections = boards.map((_, index) => document.querySelector(`[data-board="${index}"]`));

  const COLUMNS = [
    { title: "candidate", kind: "link", grow: 2 },
    { title: "AS, with its 95 % interval", kind: "speedup", digits: 3, grow: 4, hint: "Error-aware Speedup Score; eager torch is 1" },
    { title: "S", kind: "number", digits: 3, width: 70, hint: "0.5 as fast as eager torch, 1 at the hardware's limit T_sol" },
    { title: "S interval", kind: "text", wide: true, width: 108, hint: "95 % interval of S" },
    { title: "roof %", kind: "percent", wide: true, width: 78, hint: "share of the roofline that is reached, over correct trials" },
    { title: "in nets", kind: "number", width: 150, hint: "geometric mean over the whole nets that could be timed with the passes, of those that tasks came from; over torch.compile without passes" },
    { title: "correct %", kind: "percent", width: 92, wide: true, hint: "trials that agree at t = -5" },
    { title: "near float64 %", kind: "percent", wide: true, width: 104, hint: "trials that are correct, or no further from float64 than eager torch" },
    { title: "not slower %", kind: "percent", wide: true, width: 100, hint: "trials that are correct and at least as fast as eager torch" },
    { title: "speedup", kind: "number", digits: 3, wide: true, width: 92, hint: "geometric mean over correct trials" },
    { title: "not ok", kind: "text", wide: true, width: 140, hint: "trials that failed, by status; unstable ones are in no score" },
  ];

  const all = (pick) => [...new Set(boards.flatMap(pick))];
  const options = {
    suite: all((board) => [board.suite]).sort(),
    device: all((board) => [board.device]).sort(),
    hardware: all((board) => [board.hardware]).sort(),
    kind: all((board) => board.lines.map((line) => line.kind)).sort(),
  };
  for (const name of DIMENSIONS) options[name] = all((board) => board.names[name]);
  for (const [name, names] of Object.entries(options)) {
    fillSelect(form.elements[name], names);
    if (names.length < 2) form.elements[name].closest("label").hidden = true;
  }
  if (Object.values(options).every((names) => names.length < 2)) form.hidden = true;

  const specOf = (board, kind, chosen) => {
    const wanted = DIMENSIONS.map((name) => (chosen[name] ? board.names[name].indexOf(chosen[name]) : -1));
    const found = board.choices.find((choice) => wanted.every((index, at) => choice[0][at] === index));
    const rows = [];
    let graphs = 0;
    board.lines.forEach((line, index) => {
      const score = found ? found[1][index] : null;
      if (kind && line.kind !== kind) return;
      const [as, sol, bounds, roofline, correct, faster, near, speedup, trials, failed] = score ?? [null, null, null, null, null, null, null, null, 0, "not timed"];
      graphs = Math.max(graphs, trials);
      rows.push([[line.name, line.target, [line.kind, ...line.tags]], as, sol, bounds, roofline, line.nets, correct, near, faster, speedup, failed]);
    });
    const parts = new Set(board.lines.filter((line) => line.isPart).map((line) => line.name));
    const isPart = (row) => Number(parts.has(row[0][0]));  // a run of some graphs ranks below the others
    rows.sort((a, b) => isPart(a) - isPart(b) || (b[1] ? b[1][0] : 0) - (a[1] ? a[1][0] : 0));
    return { graphs, columns: COLUMNS.map((column, at) => ({ ...column, values: rows.map((row) => row[at]) })), sort: null, isEmpty: !found };
  };

  const render = () => {
    const chosen = {};
    for (const name of [...OF_BOARD, "kind", ...DIMENSIONS]) chosen[name] = form.elements[name].value;
    let shown = 0;
    boards.forEach((board, index) => {
      const section = sections[index];
      const spec = specOf(board, chosen.kind, chosen);
      const fits = OF_BOARD.every((name) => !chosen[name] || board[name] === chosen[name]);
      section.hidden = !fits || spec.isEmpty || !spec.columns[0].values.length;
      if (section.hidden) return;
      shown += 1;
      const key = JSON.stringify([chosen.kind, ...DIMENSIONS.map((name) => chosen[name])]);
      if (section.dataset.key === key) return;
      section.dataset.key = key;
      const element = section.querySelector("[data-table]");
      element.replaceChildren();
      PASSNET.buildTable(element, spec);
      section.querySelector("[data-counts]").textContent = `${PASSNET.number(spec.graphs, 0)} graphs.`;
    });
    const picked = DIMENSIONS.filter((name) => chosen[name]).map((name) => chosen[name]);
    const parts = shown === boards.length ? [] : [`${shown} of ${boards.length} tables`];
    if (picked.length) parts.push(`scores on the graphs of ${picked.join(", ")} alone`);
    status.textContent = parts.join("; ");
  };

  form.addEventListener("change", render);
  form.addEventListener("reset", () => setTimeout(render));
  form.addEventListener("submit", (event) => event.preventDefault());
  render();
};
