// Makes the columns of tables sortable by a click on their heading. Tables are complete without it.
const makeSortable = (part) => {
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value ?? cell.textContent.trim();
  };
  const compare = (one, other) => {
    const isNumber = one !== "" && other !== "" && !isNaN(one) && !isNaN(other);
    return isNumber ? one - other : one.localeCompare(other, "en", { numeric: true });
  };
  // A long table has its other rows in a second table, which is folded.
  const partsOf = (table) => {
    const box = table.parentElement;
    const rest = box.closest("details.rest") ?? box.nextElementSibling;
    if (!rest?.matches("details.rest")) return [table];
    return [rest.previousElementSibling, rest].map((part) => part.querySelector("table"));
  };
  const sort = (table, heading, column) => {
    const isDescending = heading.getAttribute("aria-sort") === "ascending";
    const parts = partsOf(table);
    const bodies = parts.map((part) => part.tBodies[0]);
    const sizes = bodies.map((body) => body.rows.length);
    const rows = bodies.flatMap((body) => [...body.rows]).sort((one, other) => {
      const order = compare(valueOf(one, column), valueOf(other, column));
      return isDescending ? -order : order;
    });
    for (const part of parts) {
      const headings = part.tHead.rows[0].cells;
      for (const other of headings) other.removeAttribute("aria-sort");
      headings[column].setAttribute("aria-sort", isDescending ? "descending" : "ascending");
    }
    bodies.forEach((body, at) => body.append(...rows.splice(0, sizes[at])));
  };
  for (const table of part.querySelectorAll("table.sort")) {
    if (!table.tHead || table.tBodies[0].rows.length < 2) continue;
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading, column));
    });
  }
};
makeSortable(document);
