// Defines the functions that read the document, in a world that the page doesn't see.
self.serializeDocument = () => {
  const roots = [];
  const collect = (node) => {
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_ELEMENT);
    for (let element = walker.currentNode; element; element = walker.nextNode()) {
      if (element.shadowRoot) {
        roots.push(element.shadowRoot);
        collect(element.shadowRoot);
      }
    }
  };
  collect(document);
  const options = { serializableShadowRoots: true, shadowRoots: roots };
  let html = '';
  for (const node of document.childNodes) {
    if (node.nodeType === Node.DOCUMENT_TYPE_NODE) {
      html += `<!DOCTYPE ${node.name}>`;
    } else if (node.nodeType === Node.COMMENT_NODE) {
      html += `<!--${node.data}-->`;
    } else if (node.nodeType === Node.ELEMENT_NODE) {
      const [start, end] = node.cloneNode(false).outerHTML.split(/(?=<\/[^<>]*>$)/);
      html += start + node.getHTML(options) + (end ?? '');
    }
  }
  return html;
};
// Returns whether the document is complete and the same as at the last call.
self.isQuiet = () => {
  const html = serializeDocument();
  const isSame = html === self.lastHtml;
  self.lastHtml = html;
  return isSame && document.readyState === 'complete';
};
self.readDocument = (maxBytes) => {
  const html = serializeDocument();
  const url = location.href;
  const navigation = self.wantedNavigation ?? null;
  // Each UTF-16 unit has at most three bytes.
  if (html.length > maxBytes) return { size: html.length, url, navigation };
  return { html, url, navigation };
};
