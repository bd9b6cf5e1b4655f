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
  const sort = (table, heading, column) => {
    const isDescending = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((one, other) => {
      const order = compare(valueOf(one, column), valueOf(other, column));
      return isDescending ? -order : order;
    });
    body.append(...rows);
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
