//! Scrolling: content that a page loads when a reader scrolls to it.

use std::sync::Arc;
use std::time::Duration;

use crate::in_memory_site::{Site, render, text_of};

/// A page of 24,000 pixels whose paragraphs load their texts when they become visible.
const LAZY: &str = r#"<!doctype html><style>div { height: 3990px; margin: 0 } p { height: 10px; margin: 0 }</style>
<div></div><p id="1">-</p><div></div><p id="2">-</p><div></div><p id="3">-</p><div></div><p id="4">-</p>
<div></div><p id="5">-</p><div></div>
<script>
const load = ({target, isIntersecting}) => {
  if (isIntersecting) fetch(target.id).then(r => r.text()).then(text => { target.textContent = text });
};
const observer = new IntersectionObserver(entries => entries.forEach(load));
document.querySelectorAll('p').forEach(paragraph => observer.observe(paragraph));
</script>"#;

/// A list that loads its next item whenever its end is less than a hundred pixels away.
/// LIST is the element that scrolls, and TARGET the target of its scroll events.
const ENDLESS: &str = r#"<!doctype html><style>body { margin: 0 } li { height: 1000px }</style>
STYLE<ol id="list"><li>0</li><li>1</li></ol>
<script>
let next = 2;
TARGET.addEventListener('scroll', () => {
  const scroller = LIST;
  if (scroller.scrollTop + scroller.clientHeight < scroller.scrollHeight - 100) return;
  fetch('/' + next++).then(r => r.text()).then(text => {
    list.append(Object.assign(document.createElement('li'), {textContent: text}));
  });
});
</script>"#;

fn numbered_texts() -> Site {
    (1..100).fold(Site::default(), |site, number| {
        site.add(
            &format!("/{number}"),
            "text/plain",
            &format!("text {number}"),
        )
    })
}

#[tokio::test]
async fn content_below_the_window_is_loaded() {
    let rendered = render(LAZY, &Arc::new(numbered_texts())).await;
    let texts = ["1", "2", "3", "4", "5"].map(|id| text_of(&rendered.dom, id));
    // The page is scrolled by twelve screens of 1,024 pixels.
    assert_eq!(texts, ["text 1", "text 2", "text 3", "-", "-"]);
}

#[tokio::test]
async fn an_endless_list_is_read_up_to_twelve_screens() {
    let in_window = ENDLESS
        .replace("STYLE", "")
        .replace("TARGET", "window")
        .replace("LIST", "document.scrollingElement");
    let style =
        "<style>body { overflow: hidden } ol { height: 100vh; margin: 0; overflow: auto }</style>";
    let in_element = ENDLESS
        .replace("STYLE", style)
        .replace("TARGET", "list")
        .replace("LIST", "list");
    let in_shadow_root = in_element.replace(
        "<script>",
        "<script>document.body.attachShadow({mode: 'open'}).innerHTML = '<div style=\"height: 100vh; \
         overflow: auto\" id=outer><slot></slot></div>'; const outer = document.body.shadowRoot.firstChild;",
    );
    let in_shadow_root = in_shadow_root
        .replace("overflow: auto }", "}")
        .replace("list.addEventListener", "outer.addEventListener")
        .replace("scroller = list", "scroller = outer");
    for html in [in_window, in_element, in_shadow_root] {
        let site = Arc::new(numbered_texts());
        let rendered = render(&html, &site).await;
        let loaded = site.paths().len();
        assert!((10..=13).contains(&loaded), "{loaded} items");
        assert!(
            rendered
                .dom
                .contains(&format!("<li>text {}</li>", loaded + 1))
        );
    }
}

#[tokio::test]
async fn a_page_is_read_at_its_top() {
    let html = "<div style='height: 5000px'></div><p id=a></p><script>let down = 0;\
        addEventListener('scroll', () => { a.textContent = `${down ||= scrollY} ${scrollY}` })</script>";
    let rendered = render(html, &Arc::default()).await;
    assert_eq!(text_of(&rendered.dom, "a"), "1024 0");
}

#[tokio::test]
async fn a_page_that_never_rests_is_scrolled_too() {
    let html = LAZY.replace(
        "<script>",
        "<script>setInterval(() => document.body.title += 'x', 100);",
    );
    let rendered = render(&html, &Arc::new(numbered_texts())).await;
    assert_eq!(text_of(&rendered.dom, "3"), "text 3");
    assert_eq!(rendered.page_time, Duration::from_secs(10));
}

#[tokio::test]
async fn each_way_to_react_to_scrolling_is_noticed() {
    let react = "document.getElementById('a').append(1)";
    for script in [
        format!("addEventListener('scroll', () => {react})"),
        format!("document.addEventListener('scroll', () => {react}, true)"),
        format!("onscroll = () => {react}"),
        format!("document.onscroll = () => {react}"),
        format!("document.body.onscroll = () => {react}"),
        format!("document.body.setAttribute('onscroll', \"{react}\")"),
    ] {
        let html = format!(
            "<body><p id=a></p><div style='height: 3000px'></div><script>{script}</script>"
        );
        let rendered = render(&html, &Arc::default()).await;
        assert_ne!(text_of(&rendered.dom, "a"), "", "{script}");
    }
}

#[tokio::test]
async fn a_page_that_does_not_react_is_not_scrolled() {
    let listen = "document.querySelector('div').addEventListener('scroll', () => {}, true)";
    for script in ["", listen] {
        let html = format!("<div style='height: 3000px'></div><script>{script}</script>");
        let rendered = render(&html, &Arc::default()).await;
        assert_eq!(rendered.page_time, Duration::from_secs(4));
    }
}

#[tokio::test]
async fn scrolling_does_not_resize_the_window() {
    let html = "<div style='height: 3000px'></div><p id=a>same</p><script>addEventListener('scroll', () => {});\
        addEventListener('resize', () => { a.textContent = `${innerWidth} ${innerHeight}` });\
        matchMedia('(min-height: 1000px)').onchange = () => { a.textContent = 'media' }</script>";
    let rendered = render(html, &Arc::default()).await;
    assert_eq!(text_of(&rendered.dom, "a"), "same");
}
