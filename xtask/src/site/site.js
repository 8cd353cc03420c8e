// The search and the menu of the site. Every page works without this script.
(() => {
  "use strict";
  const up = document.body.dataset.up;
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const menu = document.getElementById("menu");
  const pages = document.getElementById("pages");
  const RESULTS_MAX = 20;
  let loading = null;

  menu.addEventListener("click", () => {
    menu.setAttribute("aria-expanded", String(pages.classList.toggle("open")));
  });
  const here = pages.querySelector("[aria-current]");
  if (here && here.offsetTop > pages.clientHeight) pages.scrollTop = here.offsetTop - 100;

  // Lower case, with a space for each mark, so that places in the text stay the same.
  const even = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, " ");

  // The index is loaded with the first search, not with each page.
  function load() {
    loading ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = `${up}index-of-words.js`;
      script.onload = () => {
        done(window.indexOfWords.map(([place, page, title, text]) => (
          { place, page, title, text, low: even(text), head: even(`${page} ${title}`) }
        )));
      };
      script.onerror = failed;
      document.head.append(script);
    });
    return loading;
  }

  // Every word must occur in a section. A word of the heading counts ten times one of the text, and so do the words in
  // the order in which they were typed.
  function score(section, words) {
    let sum = words.length > 1 && section.low.includes(words.join(" ")) ? 10 : 0;
    for (const word of words) {
      const inHead = section.head.includes(word);
      const count = section.low.split(word).length - 1;
      if (!inHead && count === 0) return 0;
      sum += (inHead ? 10 : 0) + (even(section.title).includes(word) ? 10 : 0) + Math.min(count, 5);
    }
    return sum;
  }

  function excerpt(section, words) {
    const whole = section.low.indexOf(words.join(" "));
    const each = words.map((word) => section.low.indexOf(word)).filter((at) => at >= 0);
    const at = whole >= 0 ? whole : Math.min(...each, section.text.length);
    const start = at < 40 ? 0 : section.text.lastIndexOf(" ", at - 40) + 1;
    const small = document.createElement("small");
    let rest = section.text.slice(start, start + 180);
    while (rest) {
      const low = rest.toLowerCase();
      const hits = words.map((word) => [low.indexOf(word), word.length]).filter(([at]) => at >= 0);
      if (hits.length === 0) break;
      const [at, length] = hits.reduce((a, b) => (b[0] < a[0] ? b : a));
      const mark = document.createElement("mark");
      mark.textContent = rest.slice(at, at + length);
      small.append(rest.slice(0, at), mark);
      rest = rest.slice(at + length);
    }
    small.append(rest);
    return small;
  }

  function note(text) {
    const line = document.createElement("p");
    line.textContent = text;
    found.replaceChildren(line);
  }

  async function show() {
    const words = even(search.value).split(/\s+/).filter((word) => word.length > 1);
    found.hidden = words.length === 0;
    if (found.hidden) return;
    let sections;
    try {
      sections = await load();
    } catch {
      return note("The index could not be loaded.");
    }
    const rows = sections.map((section) => [score(section, words), section]).filter(([sum]) => sum > 0);
    rows.sort((a, b) => b[0] - a[0]);
    if (rows.length === 0) return note(`No section has “${search.value.trim()}”.`);
    found.replaceChildren(...rows.slice(0, RESULTS_MAX).map(([, section]) => {
      const link = document.createElement("a");
      link.href = up + section.place;
      const title = document.createElement("b");
      title.textContent = section.title;
      link.append(title, section.title === section.page ? "" : ` · ${section.page}`, excerpt(section, words));
      link.addEventListener("click", close);
      return link;
    }));
    if (rows.length > RESULTS_MAX) {
      const line = document.createElement("p");
      line.textContent = `${rows.length - RESULTS_MAX} more sections; a further word narrows them.`;
      found.append(line);
    }
  }

  function close() {
    found.hidden = true;
    search.value = "";
  }

  search.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    const links = [...found.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "/" && document.activeElement !== search) search.focus();
    else if (event.key === "Escape") { close(); search.blur(); }
    else if (event.key === "ArrowDown" && !found.hidden) (links[at + 1] ?? links[0])?.focus();
    else if (event.key === "ArrowUp" && at >= 0) (links[at - 1] ?? search).focus();
    else if (event.key === "Enter" && document.activeElement === search) links[0]?.click();
    else return;
    event.preventDefault();
  });
})();
