// Reads the page's data and draws it; the switch between light and dark.
"use strict";

{
  const root = document.documentElement;
  root.classList.add("scripts");
  const kept = () => {
    try {
      return localStorage.getItem("spray-theme");
    } catch {
      return null;
    }
  };
  const themes = { auto: "As the system", light: "Light", dark: "Dark" };
  const theme = (name) => {
    if (name === "auto") delete root.dataset.theme;
    else root.dataset.theme = name;
    spray.each(spray.redraws);
  };
  const select = spray.select("Theme", Object.entries(themes), (name) => {
    theme(name);
    try {
      localStorage.setItem("spray-theme", name);
    } catch {
      // A browser may forbid it to files; then the choice lasts as long as the page.
    }
  });
  const header = document.querySelector("header");
  header.append(select);
  const help = "Drag across a plot to zoom, double click to see all; names above a plot hide its lines.";
  header.append(spray.el("p", { class: "soft help" }, help));
  const before = kept();
  if (before in themes) {
    select.querySelector("select").value = before;
    theme(before);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(root.dataset.theme || "auto"));

  spray.data = JSON.parse(document.getElementById("data").textContent);
  spray[spray.data.kind](spray.data);
}
