"use strict";
(() => {
  const form = document.querySelector(".filters");
  const findings = [...document.querySelectorAll(".finding")];
  const keys = ["outcome", "level", "revision", "chapter"];

  const apply = () => {
    const wanted = keys.map((key) => [key, form.elements[key].value]);
    let shown = 0;
    for (const finding of findings) {
      const fits = wanted.every(
        ([key, value]) =>
          !value || (key === "revision" ? finding.dataset[key].split(" ") : [finding.dataset[key]]).includes(value),
      );
      finding.hidden = !fits;
      shown += fits;
    }
    form.querySelector("output").textContent = `${shown} of ${findings.length} shown`;
    document.querySelector(".nothing").hidden = shown > 0;
  };

  const choose = (key, value) => {
    const select = form.elements[key];
    if (![...select.options].some((option) => option.value === value)) {
      select.add(new Option(value, value));
    }
    select.value = value;
  };

  if (form) {
    form.addEventListener("change", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(apply));
    apply();
    for (const square of document.querySelectorAll(".picture button")) {
      square.addEventListener("click", () => {
        form.reset();
        choose("chapter", square.dataset.chapter);
        choose("revision", square.dataset.revision);
        apply();
        document.getElementById("findings").scrollIntoView();
        const first = findings.find((finding) => !finding.hidden);
        if (first) {
          first.open = true;
          first.querySelector("summary").focus({ preventScroll: true });
        }
      });
    }
  }

  const copied = (pre) => {
    const range = document.createRange();
    range.selectNodeContents(pre);
    getSelection().removeAllRanges();
    getSelection().addRange(range); // what is selected is also seen, and can be copied by hand
    return document.execCommand("copy");
  };

  for (const pre of document.querySelectorAll(".finding pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.addEventListener("click", () => {
      button.textContent = copied(pre) ? "copied" : "press Ctrl+C";
    });
    pre.before(button);
  }

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = findings.filter((finding) => !finding.open);
    for (const finding of folded) finding.open = true;
  });
  addEventListener("afterprint", () => {
    for (const finding of folded) finding.open = false;
  });
})();
