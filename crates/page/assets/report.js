// The page of a report.

unpacked().then(show).catch((error) => {
  const place = document.getElementById("pictures");
  place.replaceChildren(element("p", { class: "notice" }, "This browser cannot unpack the pictures' data (" + harmless(error.message) + "). The figures above are complete; a browser of 2023 or later shows the pictures."));
  document.documentElement.dataset.ready = "no";
});
