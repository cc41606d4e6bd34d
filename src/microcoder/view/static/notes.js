"use strict";
// Notes on rollouts: written where a server keeps them in the run's folder, read in a bundle.

viewer.notes = (() => {
  const { make, shown, count } = viewer.page;
  const kept = new Map(); // run -> its notes by rollout; null where none can be kept
  let write = null;

  // `send(run, id, text)` keeps a note and gives the run's notes; null in a bundle.
  function know(runs, send) {
    runs.forEach(({ key, notes }) => kept.set(key, notes));
    write = send;
  }

  const of = (run, id) => kept.get(run)?.[id] ?? null;

  function render(run, id) {
    const note = of(run, id);
    if (!kept.get(run) || (!write && !note)) return null;
    const written = make("span", { class: "soft" }, note ? ` written ${note.written.slice(0, 16).replace("T", " ")} UTC` : "");
    const body = write ? editor(run, id, note, written) : make("p", { class: "notice kept-lines", id: "note-text" }, shown(note.text));
    return make("details", { class: "text", id: "note", open: Boolean(note) }, make("summary", {}, "Note", written), body);
  }

  function editor(run, id, note, written) {
    const field = make("textarea", { id: "note-text", rows: 3, maxlength: 10_000, "aria-label": "Note on this rollout" });
    field.value = note?.text ?? "";
    const told = make("span", { class: "soft", role: "status", id: "note-told" });
    const save = async () => {
      try {
        kept.set(run, (await write(run, id, field.value.trim())).notes);
        told.textContent = of(run, id) ? "Kept in notes.jsonl of the run" : "Taken away";
        written.textContent = "";
        // The list says which rollouts have one.
        dispatchEvent(new Event("hashchange"));
      } catch (error) {
        told.textContent = `Not kept: ${error.message}`;
      }
    };
    return make("div", {}, field, make("div", { class: "bar-of-tools" }, make("button", { type: "button", id: "note-save", click: save }, "Keep note"), told));
  }

  // All notes of a run, as links; null where there are none.
  function list(run) {
    const notes = Object.entries(kept.get(run) ?? {});
    if (!notes.length) return null;
    const line = ([id, { text }]) => make("li", {}, make("a", { href: viewer.state.link({ view: "rollouts", run, at: id }) }, shown(id)), ` ${shown(text.length > 200 ? `${text.slice(0, 200)}…` : text)}`);
    return make("section", { id: "notes" }, make("h3", {}, `Notes: ${count(notes.length)}`), make("ul", {}, notes.map(line)));
  }

  return { know, of, render, list };
})();
