// What a page gains by script: it changes while it is looked at, and panels open in place.
// Without it every link leads to the same content, as the server renders it.
"use strict";

(() => {
  const main = document.querySelector("main[data-live]");
  if (!main) return;
  const state = main.querySelector(".live");
  let stream = null;

  const words = { live: "Live", waiting: "Reconnecting…", off: "Not live" };

  function show(name) {
    if (state.dataset.state === name && !state.hidden) return;
    state.dataset.state = name;
    state.textContent = words[name];
    state.hidden = false;
  }

  // The server has escaped all that is not its own: what arrives is markup of its templates.
  function replace(pieces) {
    for (const { id, version, html } of pieces) {
      const element = document.getElementById(id);
      if (!element || element.dataset.version === version) continue;
      const regions = [...element.querySelectorAll("[tabindex]")];
      const focused = regions.indexOf(document.activeElement);
      const scrolled = regions.map((one) => [one.scrollLeft, one.scrollTop]);
      element.innerHTML = html;
      element.dataset.version = version;
      element.querySelectorAll("[tabindex]").forEach((one, at) => {
        if (scrolled[at]) [one.scrollLeft, one.scrollTop] = scrolled[at];
        if (at === focused) one.focus({ preventScroll: true });
      });
    }
  }

  function listen() {
    if (stream) stream.close();
    const own = new EventSource(`/admin/live/${main.dataset.live}${location.search}`);
    stream = own;
    own.addEventListener("open", () => show("live"));
    own.addEventListener("parts", (event) => replace(JSON.parse(event.data)));
    for (const name of ["reload", "end"]) {
      own.addEventListener(name, () => {
        own.close();
        location.reload();
      });
    }
    own.addEventListener("error", () => {
      show("waiting");
      if (own.readyState === EventSource.CLOSED) retry(own); // it was refused, not cut
    });
  }

  function retry(own) {
    setTimeout(() => {
      if (stream === own) listen();
    }, 5000);
  }

  const panelOf = (opener) => document.getElementById(opener.getAttribute("aria-controls"));

  function close(opener) {
    const panel = panelOf(opener);
    opener.setAttribute("aria-expanded", "false");
    panel.hidden = true;
    panel.replaceChildren();
  }

  function isOpen(opener) {
    return opener.getAttribute("aria-expanded") === "true";
  }

  function remember(query) {
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
    listen();
  }

  async function open(opener) {
    document.querySelectorAll('.opener[aria-expanded="true"]').forEach(close);
    opener.setAttribute("aria-expanded", "true");
    const answer = await fetch(`/admin/panel?${opener.dataset.routing}`, {
      headers: { accept: "text/html" },
    });
    if (!answer.ok || answer.redirected) {
      location.reload();
      return;
    }
    const text = await answer.text();
    if (!isOpen(opener)) return; // closed again meanwhile
    const panel = panelOf(opener);
    panel.innerHTML = text;
    panel.hidden = false;
    remember(opener.dataset.routing);
  }

  function toggle(opener) {
    if (isOpen(opener)) {
      close(opener);
      remember("");
    } else {
      open(opener).catch(() => location.assign(`?${opener.dataset.routing}`));
    }
  }

  document.querySelectorAll(".opener").forEach((opener) => {
    opener.setAttribute("role", "button");
    opener.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      toggle(opener);
    });
    opener.addEventListener("keydown", (event) => {
      if (event.key !== " ") return;
      event.preventDefault();
      toggle(opener);
    });
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const opener = document.querySelector('.opener[aria-expanded="true"]');
    if (!opener) return;
    toggle(opener);
    opener.focus();
  });

  listen();
})();
