//! Each request of a page goes to the caller, and nothing else leaves the browser.

use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;

use crawl_browser::{Browser, PageToRender, RequestKind};

use crate::in_memory_site::{Site, config, page, page_with, render, text_of};

/// A TCP and a UDP socket on the same port of loopback. The browser must send nothing to either.
struct Forbidden {
    tcp: TcpListener,
    udp: UdpSocket,
}

impl Forbidden {
    fn new() -> Forbidden {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind(tcp.local_addr().unwrap()).unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        Forbidden { tcp, udp }
    }

    fn address(&self) -> String {
        self.tcp.local_addr().unwrap().to_string()
    }

    /// Asserts that no data arrived. Connections would wait in the socket's queue, and datagrams in
    /// its buffer.
    fn assert_untouched(&self) {
        assert!(self.tcp.accept().is_err(), "a connection");
        assert!(self.udp.recv_from(&mut [0; 2000]).is_err(), "a datagram");
    }
}

fn nasty_site(address: &str) -> Site {
    Site::default()
        .add("/style.css", "text/css", NASTY_STYLE)
        .add("/imported.css", "text/css", "")
        .add("/module.js", "text/javascript", "import './imported.js'")
        .add(
            "/imported.js",
            "text/javascript",
            "log.append('[module: ran]')",
        )
        .add("https://other.test/frame", "text/html", NASTY_FRAME)
        .add("/posted", "text/plain", "")
        .add("/xhr", "text/plain", "")
        .redirect("/redirected", "https://other.test/hop")
        .redirect("https://other.test/hop", "https://site.test/target")
        .add("/target", "text/plain", "")
        .add(
            "/worker.js",
            "text/javascript",
            &NASTY_WORKER.replace("LOOPBACK", address),
        )
        .add("/worker-import.js", "text/javascript", "")
        .add("/shared.js", "text/javascript", "fetch('/from-shared')")
        .add("/service.js", "text/javascript", "fetch('/from-service')")
        .add("/events", "text/event-stream", "data: x\n\n")
}

const NASTY_STYLE: &str = "@import '/imported.css'; @font-face {font-family: F; src: url(/font.woff2)} \
    body {font-family: F; background: url(/background.png)}";
const NASTY_FRAME: &str = "<img src=/framed.png><script>fetch('/framed-fetch')</script>\
    <script type=speculationrules>{\"prefetch\": [{\"urls\": [\"https://other.test/speculated\"], \
    \"eagerness\": \"immediate\"}]}</script>";
const NASTY_WORKER: &str = "try { new WebSocket('ws://LOOPBACK/worker') } catch {} \
    try { new WebTransport('https://LOOPBACK/worker') } catch {} importScripts('/worker-import.js'); fetch('/from-worker'); \
    postMessage([self.WebSocket, self.WebTransport, self.navigator.serviceWorker].join());";

const NASTY_HEADERS: [(&str, &str); 5] = [
    ("Speculation-Rules", "\"https://site.test/rules.json\""),
    (
        "Link",
        "<https://other.test/>; rel=preconnect, </linked.html>; rel=prefetch",
    ),
    (
        "Reporting-Endpoints",
        "default=\"https://site.test/reports\"",
    ),
    (
        "NEL",
        "{\"report_to\": \"default\", \"max_age\": 1000, \"success_fraction\": 1.0}",
    ),
    (
        "Content-Security-Policy-Report-Only",
        "img-src 'none'; report-uri https://site.test/csp-reports",
    ),
];

#[tokio::test]
async fn a_nasty_page_reaches_only_the_caller() {
    let forbidden = Forbidden::new();
    let html = include_str!("nasty.html").replace("LOOPBACK", &forbidden.address());
    let site = Arc::new(nasty_site(&forbidden.address()));
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    let page = page_with(&html, &NASTY_HEADERS);
    let rendered = browser.render(page, site.clone()).await.unwrap();
    // Render another page. Meanwhile, background requests of the first page have time to arrive.
    let after = browser
        .render(
            crate::in_memory_site::page("<p>x"),
            Arc::new(Site::default()),
        )
        .await;
    let after = after.unwrap();
    browser.close().await;
    forbidden.assert_untouched();
    assert_eq!((rendered.wall_hits, after.wall_hits), (0, 0));
    assert_eq!((rendered.requests as usize), site.seen().len());

    let seen: Vec<(RequestKind, String)> = site
        .seen()
        .into_iter()
        .map(|seen| (seen.kind, seen.url.replace("https://site.test", "")))
        .collect();
    for (kind, path) in WANTED {
        let is_wanted = |seen: &&(RequestKind, String)| seen.0 == kind && seen.1 == path;
        let count = seen.iter().filter(is_wanted).count();
        assert!(count >= 1, "{kind} {path} is missing in {seen:#?}");
    }
    for path in UNWANTED {
        assert!(
            seen.iter().all(|seen| seen.1 != path),
            "{path} in {seen:#?}"
        );
    }
    let log = text_of(&rendered.dom.replace("<p id=log>", "<p id=\"log\">"), "log").to_owned();
    for note in NOTES {
        assert!(log.contains(note), "{note} is missing in {log}");
    }
    assert_eq!(rendered.final_url, "https://site.test/");
    assert_eq!(
        rendered.navigation.as_deref(),
        Some("https://site.test/moved")
    );
}

/// Requests that must be passed to the caller.
const WANTED: [(RequestKind, &str); 31] = [
    (RequestKind::Stylesheet, "/style.css"),
    (RequestKind::Stylesheet, "/imported.css"),
    (RequestKind::Font, "/font.woff2"),
    (RequestKind::Image, "/background.png"),
    (RequestKind::Image, "/image.png"),
    (RequestKind::Image, "/preloaded.png"),
    (RequestKind::Image, "/srcdoc.png"),
    (RequestKind::Script, "/module.js"),
    (RequestKind::Script, "/imported.js"),
    (RequestKind::Document, "https://other.test/frame"),
    (RequestKind::Image, "https://other.test/framed.png"),
    (RequestKind::Xhr, "https://other.test/framed-fetch"),
    (RequestKind::Media, "/video.mp4"),
    (RequestKind::Media, "/audio.mp3"),
    (RequestKind::Media, "/track.vtt"),
    (RequestKind::Prefetch, "/prefetched.html"),
    (RequestKind::Xhr, "/posted"),
    (RequestKind::Preflight, "https://other.test/cors"),
    (RequestKind::Xhr, "/redirected"),
    (RequestKind::Xhr, "https://other.test/hop"),
    (RequestKind::Xhr, "/target"),
    (RequestKind::Xhr, "/kept"),
    (RequestKind::Beacon, "/beacon"),
    (RequestKind::Beacon, "/ping"),
    (RequestKind::Report, "/csp-reports"),
    (RequestKind::Xhr, "/xhr"),
    (RequestKind::EventSource, "/events"),
    (RequestKind::Other, "/worker.js"),
    (RequestKind::Script, "/worker-import.js"),
    (RequestKind::Xhr, "/from-worker"),
    (RequestKind::Xhr, "/from-blob"),
];

/// Requests that the browser must not even attempt.
const UNWANTED: [&str; 17] = [
    "/",
    "/speculated",
    "/speculated-page",
    "/speculated-late",
    "/speculated-framed",
    "/rules.json",
    "/linked.html",
    "/reports",
    "/shared.js",
    "/service.js",
    "/later",
    "/opened",
    "/file.zip",
    "/submitted",
    "/moved",
    "/refreshed",
    "/map.json",
];

/// The results that the page records of its attempts to send requests or open windows.
const NOTES: [&str; 16] = [
    "[post: 200]",
    "[cors: TypeError: Failed to fetch]",
    "[redirected: https://site.test/target]",
    "[xhr: 200]",
    "[worker: ,,]",
    "[shared worker: ReferenceError]",
    "[service worker: TypeError]",
    "[socket: ReferenceError]",
    "[transport: ReferenceError]",
    "[peer: ReferenceError]",
    "[open: null]",
    "[alert: undefined]",
    "[confirm: false]",
    "[socket of a frame: TypeError]",
    "[module: ran]",
    "[end: reached]",
];

#[tokio::test]
async fn requests_have_their_method_headers_and_body() {
    let html = "<script>fetch('/a', {method: 'PUT', headers: {'X-Own': 'é'.normalize('NFD')[0]}, \
        body: new Uint8Array([0, 255])})</script><iframe src=/frame></iframe>";
    let site = Arc::new(Site::default());
    let rendered = render(html, &site).await;
    let seen = site.seen();
    let put = seen.iter().find(|seen| seen.method == "PUT").unwrap();
    assert_eq!(put.body.as_deref(), Some(&[0, 255][..]));
    assert!(put.headers.contains(&("X-Own".to_owned(), "e".to_owned())));
    let agent = ("User-Agent".to_owned(), "crawl-test/1.0".to_owned());
    assert!(put.headers.contains(&agent), "{:?}", put.headers);
    assert!(!put.is_frame);
    assert!(
        seen.iter()
            .any(|seen| seen.is_frame && seen.kind == RequestKind::Document)
    );
    assert_eq!((rendered.requests, rendered.refused), (2, 2));
}

#[tokio::test]
async fn the_document_is_not_fetched_again() {
    let site = Arc::new(Site::default());
    let html = "<p id=a></p><script>a.textContent = navigator.userAgent</script>";
    let rendered = render(html, &site).await;
    assert_eq!(site.paths(), Vec::<String>::new());
    assert_eq!(
        text_of(&rendered.dom.replace("<p id=a>", "<p id=\"a\">"), "a"),
        "crawl-test/1.0"
    );
    assert_eq!(rendered.final_url, "https://site.test/");
}

#[tokio::test]
async fn shadow_roots_are_serialized() {
    let html = "<!doctype html><html lang=en class='a>b'><div id=open></div><div id=closed></div>\
        <div><template shadowrootmode=open><b>declared</b></template></div><script>\
        open.attachShadow({mode: 'open'}).innerHTML = '<i>inside</i><span></span>';\
        open.shadowRoot.lastChild.attachShadow({mode: 'open'}).innerHTML = '<u>nested</u>';\
        closed.attachShadow({mode: 'closed'}).innerHTML = '<s>hidden</s>';\
        document.title = String(closed.shadowRoot);</script>";
    let html = html
        .replace("open.", "document.getElementById('open').")
        .replace("closed.", "document.getElementById('closed').");
    let rendered = render(&html, &Arc::default()).await;
    let dom = &rendered.dom;
    assert!(
        dom.starts_with("<!DOCTYPE html><html lang=\"en\" class=\"a&gt;b\"><head>"),
        "{dom}"
    );
    assert!(dom.ends_with("</body></html>"), "{dom}");
    for part in [
        "<i>inside</i>",
        "<u>nested</u>",
        "<s>hidden</s>",
        "<b>declared</b>",
    ] {
        assert!(dom.contains(part), "no {part} in {dom}");
    }
    assert!(dom.contains("<title>null</title>"), "{dom}");
}

/// A page whose script inserts the HTML of a link in many places where a browser treats it as text.
const PLANTED: &str = r#"<!doctype html><title>T</title><body><div id="host"></div><script>
const link = '<a href=/planted>x</a>';
const add = (name, content, parent = document.body, space = 'http://www.w3.org/1999/xhtml') => {
  const element = document.createElementNS(space, name);
  element.append(content);
  return parent.appendChild(element);
};
const svg = 'http://www.w3.org/2000/svg';
add('script', JSON.stringify({ a: '</scr' + 'ipt>' + link })).type = 'application/ld+json';
add('script', JSON.stringify(['<!-- <scr' + 'ipt>', link])).type = 'application/json';
for (const name of ['style', 'iframe', 'noembed', 'noframes', 'xmp', 'textarea', 'title']) {
  add(name, `</${name} >${link}`);
}
add('title', document.createComment('</title>' + link));
add('noscript', '</noscript>' + link);
for (const data of ['-->', '--!>', '>', '->']) add('p', document.createComment(data + link));
add('p', document.createProcessingInstruction('a', '>' + link));
add('p', 'x').setAttribute('title', '">' + link);
add('style', link, add('svg', '', document.body, svg));
add('style', document.createComment('</style>' + link), document.body, svg);
add('meta', '', add('svg', '', document.body, svg), svg).setAttribute('name', 'robots');
add('link', 'http://feed.test/', document.body, null);
add('_a', 'x');
const template = add('template', '');
template.content.append(document.createComment('--></template>' + link));
template.setAttribute('shadowrootmode', 'open');
const root = host.attachShadow({ mode: 'open' });
add('style', '</style>' + link, root);
add('plaintext', link);
add('p', 'end');
document.currentScript.remove();
</script>"#;

#[tokio::test]
async fn a_document_is_serialized_so_that_it_parses_back() {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    let dom = async |page| browser.render(page, Arc::new(Site::default())).await;
    let first = dom(page(PLANTED)).await.unwrap().dom;
    let link = "<a href=/planted>x</a>";
    let escaped = "&lt;a href=/planted&gt;x&lt;/a&gt;";
    for part in [
        format!(r#"<script type="application/ld+json">{{"a":"<\/script>{link}"}}</script>"#),
        format!(r#"<script type="application/json">["\u003c!-- <script>","{link}"]</script>"#),
        format!(r"<style><\/style >{link}</style>"),
        format!("<pre>&lt;/xmp &gt;{escaped}</pre>"),
        format!("<textarea>&lt;/textarea &gt;{escaped}</textarea>"),
        "<title></title>".to_owned(),
        format!("<p><!----&gt;{link}--></p><p><!----!&gt;{link}--></p>"),
        format!("<p><!--&gt;{link}--></p><p><!---&gt;{link}--></p>"),
        format!("<p><?a &gt;{escaped}?></p>").replace("&lt;", "<"),
        format!(r#"<p title="&quot;&gt;{escaped}">x</p>"#),
        format!("<svg><style>{escaped}</style></svg>"),
        format!("<x-style><!--</style>{link}--></x-style>"),
        r#"<svg><x-meta name="robots"></x-meta></svg>"#.to_owned(),
        "<x-link>http://feed.test/</x-link><x-_a>x</x-_a>".to_owned(),
        format!("<template><!----&gt;</template>{link}--></template>"),
        format!(r#"<template shadowrootmode="open"><style><\/style>{link}</style></template>"#),
        format!("<pre>{escaped}</pre><p>end</p></body></html>"),
    ] {
        assert!(first.contains(&part), "no {part} in {first}");
    }
    let without_scripts = [("Content-Security-Policy", "script-src 'none'")];
    let second = dom(page_with(&first, &without_scripts)).await.unwrap().dom;
    assert_eq!(second, first);
    let xhtml = PageToRender {
        headers: vec![(
            "Content-Type".to_owned(),
            "application/xhtml+xml".to_owned(),
        )],
        ..page(
            "<html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>T</title></head><body>\
            <p><![CDATA[1 < 2]]></p><script>//<![CDATA[\nlet a = 1 && 2;\n//]]></script></body></html>",
        )
    };
    let dom = dom(xhtml).await.unwrap().dom;
    let body = "<p>1 &lt; 2</p><script>//\nlet a = 1 && 2;\n//</script>";
    assert!(dom.contains(body), "{dom}");
    browser.close().await;
}

#[tokio::test]
async fn the_last_navigation_before_the_page_would_be_left_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    for (script, expected) in [
        ("location = '/de/'; location = '/en/'", "/en/"),
        (
            "location = 'myapp://open/1'; setTimeout(() => { location = '/web' }, 500)",
            "/web",
        ),
        (
            "location = 'mailto:a@b.example'; setTimeout(() => { location = '/web' }, 50)",
            "/web",
        ),
        (
            "location = '/left'; setTimeout(() => { location = '/late' }, 500)",
            "/left",
        ),
        ("location = '/app'; location = 'myapp://open/1'", "/app"),
        (
            "save.click(); setTimeout(() => { location = '/thanks' }, 500)",
            "/thanks",
        ),
        (
            "location.reload(); setTimeout(() => { location = '/next' }, 500)",
            "/next",
        ),
    ] {
        let html = format!("<a id=save href=/file.zip download>f</a><script>{script}</script>");
        let site = Arc::new(Site::default());
        let rendered = browser.render(page(&html), site).await.unwrap();
        let expected = format!("https://site.test{expected}");
        assert_eq!(rendered.navigation, Some(expected), "{script}");
    }
    browser.close().await;
}

#[tokio::test]
async fn elements_for_browsers_without_scripts_are_not_serialized() {
    let html = "<!doctype html><html class='a\"b'><head><noscript><meta http-equiv=refresh \
        content='0;url=/nojs'></noscript><title>T</title></head><body>1 &lt; 2 &amp; &nbsp;<!--c-->\
        <noscript><p>zebra</p></noscript><img alt=i><svg viewBox='0 0 1 1'><title>s</title></svg>\
        <template><b>inert</b></template><div id=open>light<noscript>zebra</noscript></div>\
        <x-closed><i>child</i></x-closed><script>const text = '<noscript>in a script</noscript>';\
        document.querySelector('#open').attachShadow({mode: 'open'}).innerHTML =\
        '<noscript>zebra</noscript><slot></slot>';\
        document.querySelector('x-closed').attachShadow({mode: 'closed'}).innerHTML =\
        '<s>x</s><noscript>zebra</noscript>';\
        </script></body></html>";
    let dom = render(html, &Arc::default()).await.dom;
    let start = "<!DOCTYPE html><html class=\"a&quot;b\"><head><title>T</title></head><body>\
        1 &lt; 2 &amp; &nbsp;<!--c--><img alt=\"i\"><svg viewBox=\"0 0 1 1\"><title>s</title></svg>\
        <template><b>inert</b></template><div id=\"open\"><template shadowrootmode=\"open\">\
        <slot></slot></template>light</div><x-closed><template shadowrootmode=\"closed\"";
    assert!(dom.starts_with(start), "{dom}");
    let end = "><s>x</s></template><i>child</i></x-closed><script>const text = \
        '<noscript>in a script</noscript>';";
    assert!(dom[start.len()..].contains(end), "{dom}");
    assert!(dom.ends_with("</script></body></html>"), "{dom}");
}

#[tokio::test]
async fn relative_links_resolve_as_in_the_browser() {
    let html = "<head><title>T</title></head><a href=next>n</a><script>
        history.replaceState(null, '', '/docs/?a=1&b#c')</script>";
    let rendered = render(html, &Arc::default()).await;
    let base = "<head><base href=\"https://site.test/docs/?a=1&amp;b\"><title>";
    assert!(rendered.dom.contains(base), "{}", rendered.dom);
    // A base element resolves against the address that the document has when it is inserted.
    let html = "<head></head><script>history.replaceState(null, '', '/docs/');
        document.head.innerHTML = '<base href=sub/>'</script>";
    let rendered = render(html, &Arc::default()).await;
    let bases = "<base href=\"https://site.test/docs/sub/\"><base href=\"sub/\">";
    assert!(rendered.dom.contains(bases), "{}", rendered.dom);
    for unchanged in [
        "history.replaceState(null, '', '#here')",
        "document.head.innerHTML = '<base href=sub/>'; history.replaceState(null, '', '/docs/')",
    ] {
        let html = format!("<head></head><a href=next>n</a><script>{unchanged}</script>");
        let rendered = render(&html, &Arc::default()).await;
        assert!(
            !rendered.dom.contains("<base href=\"https:"),
            "{}",
            rendered.dom
        );
    }
}

#[tokio::test]
async fn queries_are_encoded_as_in_the_browser() {
    let links =
        b"<a href='/g?x=\xd6\xd0'>a</a><link rel=next href='?\xd6\xd0'><p title='?\xd6\xd0'>\
        <a href='/\xd6\xd0'>b</a>";
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    for (charset, expected) in [
        (
            "gbk",
            "<a href=\"https://site.test/g?x=%D6%D0\">a</a>\
             <link rel=\"next\" href=\"https://site.test/?%D6%D0\"><p title=\"?\u{4e2d}\">\
             <a href=\"/\u{4e2d}\">b</a>",
        ),
        ("utf-8", "<a href=\"/g?x=\u{fffd}"),
    ] {
        let page = PageToRender {
            headers: vec![(
                "Content-Type".to_owned(),
                format!("text/html; charset={charset}"),
            )],
            body: links.to_vec().into(),
            ..page("")
        };
        let site = Arc::new(Site::default());
        let dom = browser.render(page, site).await.unwrap().dom;
        assert!(dom.contains(expected), "{dom}");
    }
    browser.close().await;
}

#[tokio::test]
async fn lone_surrogates_are_serialized_as_replacement_characters() {
    let html = r#"<p id="a"></p><script>const emoji = '\u{1f600}'; const half = emoji[0];
        alert(half); document.title = half;
        new Worker(URL.createObjectURL(new Blob([`fetch('https://site.test/${half}')`])));
        fetch('/?' + half, {method: 'POST', body: half}).catch(() => {
            a.textContent = 'fun ' + half + '\u2026' + emoji + emoji[1]; })</script>"#;
    let site = Arc::new(Site::default());
    let rendered = render(html, &site).await;
    let shown = text_of(&rendered.dom, "a");
    assert_eq!(shown, "fun \u{fffd}\u{2026}\u{1f600}\u{fffd}");
    let seen = site.seen();
    let posted = seen.iter().find(|seen| seen.method == "POST").unwrap();
    assert_eq!(posted.body.as_deref(), Some("\u{fffd}".as_bytes()));
    assert_eq!(posted.url, "https://site.test/?%EF%BF%BD");
}

#[tokio::test]
async fn cookies_do_not_outlive_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    for _ in 0..2 {
        let html = "<p id=\"a\">-</p><script>a.textContent = document.cookie + localStorage.b;\
            document.cookie = 'a=1'; localStorage.b = 2</script>";
        let rendered = browser
            .render(page(html), Arc::new(Site::default()))
            .await
            .unwrap();
        assert_eq!(text_of(&rendered.dom, "a"), "undefined");
    }
    browser.close().await;
}
