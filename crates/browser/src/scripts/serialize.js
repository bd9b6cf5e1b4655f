// Defines the functions that read the document, in a world that the page doesn't see.
(() => {
  const HTML = 'http://www.w3.org/1999/xhtml';
  const FOREIGN = ['http://www.w3.org/2000/svg', 'http://www.w3.org/1998/Math/MathML'];
  const VOID = 'area base br col embed hr img input link meta param source track wbr'.split(' ');
  // HTML elements whose content a parser reads as text, without and with character references.
  const RAW_TEXT = 'iframe noembed noframes script style'.split(' ');
  const ESCAPABLE_TEXT = ['textarea', 'title'];
  // Names with which a parser finds an HTML element even within SVG and MathML, and that can be
  // links or directives.
  const NEVER_FOREIGN = ['embed', 'img', 'meta'];
  // SVG elements whose content a parser reads as HTML.
  const HTML_WITHIN_SVG = ['foreignObject', 'desc', 'title'];
  // The charsets whose documents have queries in UTF-8 (URL Standard, "get an output encoding").
  const UTF = /^(utf-|replacement$)/i;

  const isHtml = (element, name) => element.localName === name && element.namespaceURI === HTML;
  const isForeign = ({ namespaceURI }) => FOREIGN.includes(namespaceURI);
  const isText = ({ nodeType }) =>
    nodeType === Node.TEXT_NODE || nodeType === Node.CDATA_SECTION_NODE;
  const isVoid = (element) => element.namespaceURI === HTML && VOID.includes(element.localName);
  const hasOnlyText = ({ namespaceURI, localName }) =>
    namespaceURI === HTML && (RAW_TEXT.includes(localName) || ESCAPABLE_TEXT.includes(localName));

  // Returns whether a parser may read the element as one of another namespace, because scripts put
  // an HTML element into an SVG or MathML element or the other way round.
  const isMisplaced = (element) => {
    let node = element;
    if (isForeign(element)) {
      while (isForeign(node) && !['svg', 'math'].includes(node.localName)) node = node.parentNode;
      return !isForeign(node);
    }
    while (node && !isForeign(node)) node = node.parentNode;
    return node !== null && !HTML_WITHIN_SVG.includes(node.localName);
  };

  // Returns the name under which a parser finds an element that means the same. The prefix `x-`
  // makes it an unknown element.
  const nameOf = (element) => {
    const { namespaceURI, localName, tagName } = element;
    if (namespaceURI === HTML) {
      // A parser reads the rest of the document as the text of `plaintext`, and `xmp` can't contain
      // all texts.
      if (localName === 'plaintext' || localName === 'xmp') return 'pre';
      return /^[a-z][^A-Z]*$/.test(localName) ? localName : `x-${localName}`;
    }
    const isRenamed = !isForeign(element) || NEVER_FOREIGN.includes(localName);
    return isRenamed || isMisplaced(element) ? `x-${tagName}` : localName;
  };

  const escapeText = (text) => text.replaceAll('&', '&amp;').replaceAll('\u00a0', '&nbsp;')
    .replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const escapeValue = (value) => escapeText(value).replaceAll('"', '&quot;');
  // Comments have no escapes, so these replacements only keep the end where it is.
  const escapeComment = (data) =>
    data.replace(/^-?>|--!?>/g, (end) => end.replace('>', '&gt;'));
  const escapeInstruction = (data) => data.replaceAll('>', '&gt;');

  const childText = (element) =>
    [...element.childNodes].filter(isText).map(({ data }) => data).join('');
  // Returns the text of an element as a parser finds it again. An end tag in the text is written so
  // that JSON, strings of scripts and strings of style sheets keep their value.
  const escapeChildText = (element) => {
    const text = childText(element);
    const { localName } = element;
    if (ESCAPABLE_TEXT.includes(localName)) return escapeText(text);
    if (isMisplaced(element)) return text.includes('<') ? escapeText(text) : text;
    const endTag = new RegExp(`</(?=${localName}[\\t\\n\\f\\r />])`, 'gi');
    const ended = text.replace(endTag, '<\\/');
    // After `<!--` and `<script`, an end tag of a script wouldn't end it.
    const mayNest = localName === 'script' && /<script[\t\n\f\r />]/i.test(text);
    return mayNest ? ended.replaceAll('<!--', '\\u003c!--') : ended;
  };

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
      // A parser would make a shadow root of a template that is none in this document.
      if (name === 'shadowrootmode' && isHtml(element, 'template')) continue;
      tag += ` ${name}="${escapeValue(resolvedAddress(element, name, value))}"`;
    }
    return `${tag}>`;
  };
  const shadowRootOf = (element) => element.shadowRoot ?? self.closedShadowRoots?.get(element);
  const shadowRootTag = (root) => {
    let tag = `<template shadowrootmode="${root.mode}"`;
    if (root.delegatesFocus) tag += ' shadowrootdelegatesfocus=""';
    if (root.serializable) tag += ' shadowrootserializable=""';
    if (root.clonable) tag += ' shadowrootclonable=""';
    return `${tag}>`;
  };

  // Returns whether the browser would serialize the node so that a parser finds something else.
  const isAltered = (node) => {
    switch (node.nodeType) {
      case Node.COMMENT_NODE: return escapeComment(node.data) !== node.data;
      case Node.PROCESSING_INSTRUCTION_NODE: return escapeInstruction(node.data) !== node.data;
      case Node.CDATA_SECTION_NODE: return true;
      case Node.ELEMENT_NODE: break;
      default: return false;
    }
    if (isHtml(node, 'noscript') || nameOf(node) !== node.localName) return true;
    if (isHtml(node, 'template')) return node.hasAttribute('shadowrootmode') || isMisplaced(node);
    if (!hasOnlyText(node)) return false;
    const isRaw = RAW_TEXT.includes(node.localName);
    return ![...node.childNodes].every(isText)
      || (isRaw && escapeChildText(node) !== childText(node));
  };

  // Serializes the document such that a parser finds the same elements and texts again. The browser
  // serializes whatever contains no node in `changed`.
  class Serializer {
    constructor(base) {
      this.base = base;
      this.roots = [];
      // The templates by their contents.
      this.templates = new Map();
      // Nodes that are serialized differently than the browser would, and all nodes around them.
      this.changed = new Set();
      this.collect(document);
      if (base !== undefined) this.change(document.head ?? document.documentElement);
      this.options = { shadowRoots: this.roots };
    }

    collect(root) {
      const shown = NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_CDATA_SECTION
        | NodeFilter.SHOW_PROCESSING_INSTRUCTION | NodeFilter.SHOW_COMMENT;
      const walker = document.createTreeWalker(root, shown);
      const isUtf = UTF.test(document.characterSet);
      for (let node = walker.currentNode; node; node = walker.nextNode()) {
        const shadowRoot = shadowRootOf(node);
        if (shadowRoot) {
          this.roots.push(shadowRoot);
          this.collect(shadowRoot);
        }
        if (isHtml(node, 'template')) {
          this.templates.set(node.content, node);
          this.collect(node.content);
        }
        if (isAltered(node)) this.change(node);
        for (const name of isUtf || !node.attributes ? [] : ['href', 'src']) {
          const value = node.getAttribute(name) ?? '';
          if (resolvedAddress(node, name, value) !== value) this.change(node);
        }
      }
    }

    change(changed) {
      for (let node = changed; node && !this.changed.has(node); node = this.parent(node)) {
        this.changed.add(node);
      }
    }

    parent(node) {
      return node.parentNode ?? node.host ?? this.templates.get(node);
    }

    outer(node) {
      switch (node.nodeType) {
        case Node.DOCUMENT_TYPE_NODE: return `<!DOCTYPE ${node.name}>`;
        case Node.COMMENT_NODE: return `<!--${escapeComment(node.data)}-->`;
        case Node.PROCESSING_INSTRUCTION_NODE:
          return `<?${node.target} ${escapeInstruction(node.data)}?>`;
        case Node.TEXT_NODE:
        case Node.CDATA_SECTION_NODE: return escapeText(node.data);
        case Node.ELEMENT_NODE: break;
        default: return '';
      }
      // A browser with scripts doesn't show the content of `noscript`.
      if (isHtml(node, 'noscript')) return '';
      if (isVoid(node)) return startTag(node);
      const inner = this.changed.has(node) ? this.inner(node) : node.getHTML(this.options);
      return `${startTag(node)}${inner}</${nameOf(node)}>`;
    }

    inner(node) {
      if (hasOnlyText(node)) return escapeChildText(node);
      // A parser would show the content of a misplaced template.
      if (isHtml(node, 'template')) return isMisplaced(node) ? '' : this.inner(node.content);
      let html = '';
      const shadowRoot = shadowRootOf(node);
      if (shadowRoot) html += `${shadowRootTag(shadowRoot)}${this.inner(shadowRoot)}</template>`;
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
