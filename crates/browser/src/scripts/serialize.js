// Defines the functions that read the document, in a world that the page doesn't see.
(() => {
  const HTML = 'http://www.w3.org/1999/xhtml';
  // Elements in these namespaces are serialized without the prefix of their name.
  const WITHOUT_PREFIX = [HTML, 'http://www.w3.org/2000/svg', 'http://www.w3.org/1998/Math/MathML'];
  const VOID = 'area base br col embed hr img input link meta param source track wbr'.split(' ');
  // The charsets whose documents have queries in UTF-8 (URL Standard, "get an output encoding").
  const UTF = /^(utf-|replacement$)/i;

  const isHtml = (element, name) => element.localName === name && element.namespaceURI === HTML;
  const nameOf = ({ namespaceURI, localName, tagName }) =>
    (WITHOUT_PREFIX.includes(namespaceURI) ? localName : tagName);
  const escapeText = (text) => text.replaceAll('&', '&amp;').replaceAll('\u00a0', '&nbsp;')
    .replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const escapeValue = (value) => escapeText(value).replaceAll('"', '&quot;');

  // Returns the address of a link as the browser resolves it, if its query has characters that the
  // browser encodes in the document's charset. A reader of the serialized document, which is in
  // UTF-8, would encode them differently.
  const resolvedAddress = (element, name, value) => {
    const isQuery = /\?.*[^\x00-\x7f]/s.test(value) && !UTF.test(document.characterSet);
    const isLink = (name === 'href' || name === 'src') && !isHtml(element, 'base');
    const resolved = isQuery && isLink ? element[name] : value;
    return typeof resolved === 'string' ? resolved : value;
  };

  const startTag = (element) => {
    let tag = `<${nameOf(element)}`;
    for (const { name, value } of element.attributes) {
      tag += ` ${name}="${escapeValue(resolvedAddress(element, name, value))}"`;
    }
    return `${tag}>`;
  };
  const endTag = (element) => {
    if (element.namespaceURI === HTML && VOID.includes(element.localName)) return '';
    return `</${nameOf(element)}>`;
  };
  const shadowRootTag = (root) => {
    let tag = `<template shadowrootmode="${root.mode}"`;
    if (root.delegatesFocus) tag += ' shadowrootdelegatesfocus=""';
    if (root.serializable) tag += ' shadowrootserializable=""';
    if (root.clonable) tag += ' shadowrootclonable=""';
    return `${tag}>`;
  };

  // Serializes the document. The browser serializes whatever contains no element in `changed`.
  class Serializer {
    constructor(base) {
      this.base = base;
      this.roots = [];
      // Elements that are serialized differently than the browser would, and all nodes around them.
      this.changed = new Set();
      this.collect(document);
      if (base !== undefined) this.change(document.head ?? document.documentElement);
      this.options = { serializableShadowRoots: true, shadowRoots: this.roots };
    }

    collect(node) {
      const walker = document.createTreeWalker(node, NodeFilter.SHOW_ELEMENT);
      const isUtf = UTF.test(document.characterSet);
      for (let element = walker.currentNode; element; element = walker.nextNode()) {
        if (element.shadowRoot) {
          this.roots.push(element.shadowRoot);
          this.collect(element.shadowRoot);
        }
        if (isHtml(element, 'noscript')) this.change(element);
        for (const name of isUtf || !element.attributes ? [] : ['href', 'src']) {
          const value = element.getAttribute(name) ?? '';
          if (resolvedAddress(element, name, value) !== value) this.change(element);
        }
      }
    }

    change(element) {
      for (let node = element; node && !this.changed.has(node); node = node.parentNode ?? node.host) {
        this.changed.add(node);
      }
    }

    // Only the browser can serialize a closed shadow root.
    hasClosedShadowRoot(element) {
      const mayHaveRoot = element.localName.includes('-') && !element.shadowRoot;
      return mayHaveRoot
        && element.getHTML(this.options).startsWith('<template shadowrootmode="closed"');
    }

    outer(node) {
      switch (node.nodeType) {
        case Node.DOCUMENT_TYPE_NODE: return `<!DOCTYPE ${node.name}>`;
        case Node.COMMENT_NODE: return `<!--${node.data}-->`;
        case Node.PROCESSING_INSTRUCTION_NODE: return `<?${node.target} ${node.data}>`;
        case Node.TEXT_NODE: return escapeText(node.data);
        case Node.ELEMENT_NODE: break;
        default: return '';
      }
      // A browser with scripts doesn't show the content of `noscript`.
      if (isHtml(node, 'noscript')) return '';
      const isNative = !this.changed.has(node) || this.hasClosedShadowRoot(node);
      const inner = isNative ? node.getHTML(this.options) : this.inner(node);
      return startTag(node) + inner + endTag(node);
    }

    inner(node) {
      let html = '';
      if (node.shadowRoot) {
        html += `${shadowRootTag(node.shadowRoot)}${this.inner(node.shadowRoot)}</template>`;
      }
      if (this.base !== undefined && node === (document.head ?? document.documentElement)) {
        const base = `<base href="${escapeValue(this.base)}">`;
        html += document.head ? base : `<head>${base}</head>`;
      }
      for (const child of node.childNodes) html += this.outer(child);
      return html;
    }
  }

  const serializeDocument = (base) => new Serializer(base).inner(document);

  // Returns the base URL of the document if a reader who knows only `url`, the URL of the document
  // as fetched, would find another one. A script may have changed the document's URL.
  const unexpectedBase = (url) => {
    const declared = document.querySelector('base[href]')?.getAttribute('href') ?? '';
    const expected = URL.canParse(declared, url) ? new URL(declared, url).href : url;
    const [base, expectedBase] = [document.baseURI, expected].map((base) => base.split('#')[0]);
    return base === expectedBase ? undefined : base;
  };

  // Returns whether the document is complete and the same as at the last call.
  self.isQuiet = () => {
    const html = serializeDocument();
    const isSame = html === self.lastHtml;
    self.lastHtml = html;
    return isSame && document.readyState === 'complete';
  };
  self.readDocument = (maxBytes, fetchedUrl) => {
    const html = serializeDocument(unexpectedBase(fetchedUrl));
    const url = location.href;
    const navigation = self.wantedNavigation ?? null;
    // Each UTF-16 unit has at most three bytes.
    if (html.length > maxBytes) return { size: html.length, url, navigation };
    return { html, url, navigation };
  };
})();
