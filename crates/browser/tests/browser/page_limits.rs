//! Pages that take too long, use too much memory, or crash.

use std::sync::Arc;
use std::time::Duration;

use crawl_browser::{
    Browser, BrowserConfig, ExceededLimit, RenderError, RenderingResult, ScreenshotError,
};

use crate::in_memory_site::{LateScriptSite, PATIENT, Site, config, page, text_of, try_render};

#[tokio::test]
async fn a_page_in_an_endless_loop_is_killed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.timeout = Duration::from_secs(5);
    let browser = Browser::launch(config).await.unwrap();
    let ends = async |html| {
        let rendered = browser.render(page(html), Arc::new(Site::default())).await;
        let error = rendered.unwrap_err();
        assert!(matches!(error, RenderError::Timeout), "{error:?}");
        assert_eq!(error.name(), "render_timeout");
    };
    tokio::join!(
        ends("<script>for (;;);</script>"),
        ends("<script>setTimeout(() => { for (;;); }, 500)</script>")
    );
    let after = browser
        .render(page("<p id=\"a\">fine</p>"), Arc::new(Site::default()))
        .await;
    assert_eq!(text_of(&after.unwrap().dom, "a"), "fine");
    browser.close().await;
}

#[tokio::test]
async fn a_huge_dom_is_refused() {
    let html = "<p id=a></p><script>a.textContent = 'x'.repeat(3000)</script>";
    let site = Arc::default();
    let error = try_render(html, &site, |config| config.max_dom_bytes = 2000)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RenderError::Budget(ExceededLimit::Dom)),
        "{error:?}"
    );
    assert_eq!(error.name(), "render_budget");
    // The limit counts bytes, not characters.
    let html = "<p id=a></p><script>a.textContent = '東'.repeat(1500)</script>";
    let error = try_render(html, &site, |config| config.max_dom_bytes = 4000)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RenderError::Budget(ExceededLimit::Dom)),
        "{error:?}"
    );
}

/// A page whose memory use grows without end.
const GREEDY: &str = "<script>const held = []; setInterval(() => {\
    for (let i = 0; i < 10; i++) held.push(new Uint8Array(1 << 20).fill(i + 1)); }, 1)</script>";

#[tokio::test]
async fn a_page_rendered_next_to_a_greedy_one_is_rendered_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.memory_bytes = 400 << 20;
    let browser = Browser::launch(config).await.unwrap();
    let (patient, seen) = LateScriptSite::new();
    let patient = Arc::new(patient);
    let innocent = browser.render(page(PATIENT), patient.clone());
    let greedy = async {
        seen.await.unwrap();
        browser
            .render(page(GREEDY), Arc::new(Site::default()))
            .await
    };
    let (innocent, greedy) = tokio::join!(innocent, greedy);
    assert_eq!(text_of(&innocent.unwrap().dom, "a"), "fine");
    // The second rendering repeats the kept answer for `/known.js` and requests only `/late.js`
    // again.
    assert_eq!(patient.paths(), ["/known.js", "/late.js", "/late.js"]);
    let error = greedy.unwrap_err();
    assert!(
        matches!(error, RenderError::Budget(ExceededLimit::Memory)),
        "{error:?}"
    );
    browser.close().await;
}

#[tokio::test]
async fn a_page_that_needs_too_much_memory_is_ended() {
    let change = |config: &mut BrowserConfig| config.memory_bytes = 400 << 20;
    let error = try_render(GREEDY, &Arc::default(), change)
        .await
        .unwrap_err();
    assert!(
        matches!(error, RenderError::Budget(ExceededLimit::Memory)),
        "{error:?}"
    );
}

#[tokio::test]
async fn requests_beyond_the_bound_are_refused() {
    let html = "<p id=a>0</p><script>(async () => { for (let i = 0; i < 20; i++) {\
        await fetch('/' + i).catch(() => a.textContent++); } })()</script>";
    let site = Arc::new(Site::default());
    let rendered = try_render(html, &site, |config| config.max_requests = 7)
        .await
        .unwrap();
    assert_eq!(site.seen().len(), 7);
    assert_eq!((rendered.requests, rendered.refused), (7, 20));
    assert_eq!(rendered.withheld, 13);
    assert_eq!(
        text_of(&rendered.dom.replace("<p id=a>", "<p id=\"a\">"), "a"),
        "20"
    );
}

#[tokio::test]
async fn pages_beyond_the_tabs_wait() {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    let renders: Vec<_> = (0..5)
        .map(|number| {
            let browser = browser.clone();
            let html = format!("<p id=\"a\">{number}</p>");
            tokio::spawn(
                async move { browser.render(page(&html), Arc::new(Site::default())).await },
            )
        })
        .collect();
    for (number, render) in renders.into_iter().enumerate() {
        let rendered = render.await.unwrap().unwrap();
        assert_eq!(text_of(&rendered.dom, "a"), number.to_string());
    }
    browser.close().await;
}

/// Renders a page with a screenshot, after `change` has adjusted the settings.
async fn shown(html: &str, change: impl FnOnce(&mut BrowserConfig)) -> RenderingResult {
    let site = Arc::default();
    let rendered = try_render(html, &site, |config| {
        config.screenshots = true;
        change(config);
    });
    rendered.await.unwrap()
}

#[tokio::test]
async fn a_screenshot_shows_the_page_that_scripts_built() {
    let site = Arc::default();
    let without = try_render("<h1>Hello</h1>", &site, |_| {}).await.unwrap();
    assert_eq!(without.screenshot, None);
    let plain = "<body style=\"background: red\">";
    let built =
        "<script>setTimeout(() => { document.body.style.background = 'red' }, 900)</script>";
    let mut images = Vec::new();
    for html in ["<p>", built, plain] {
        let image = shown(html, |_| {}).await.screenshot.unwrap().unwrap();
        assert!(image.starts_with(b"\x89PNG"));
        // The PNG header begins with the width (1280) and the height (1024).
        assert_eq!(image[16..24], [0, 0, 5, 0, 0, 0, 4, 0]);
        images.push(image);
    }
    assert_ne!(images[0], images[1]);
    assert_eq!(images[1], images[2]);
}

#[tokio::test]
async fn a_page_that_never_rests_has_a_screenshot() {
    for html in [
        "<style>@keyframes a { to { margin-left: 99px } } p { animation: a 1s infinite }</style><p>x",
        "<p id=a>x<script>(function f() { a.textContent += 'x'; requestAnimationFrame(f) })()</script>",
        "<p id=a>x<script>setInterval(() => { a.textContent += 'x' }, 1)</script>",
        "<p>x<div style=height:99999px>",
    ] {
        let rendered = shown(html, |_| {}).await;
        assert!(rendered.dom.contains("<p"), "{html}");
        assert!(rendered.screenshot.unwrap().is_ok(), "{html}");
    }
}

#[tokio::test]
async fn a_failed_screenshot_leaves_the_page() {
    let rendered = shown("<p id=\"a\">tea", |config| {
        config.max_screenshot_bytes = 100
    })
    .await;
    assert_eq!(text_of(&rendered.dom, "a"), "tea");
    let error = rendered.screenshot.unwrap().unwrap_err();
    assert!(matches!(error, ScreenshotError::TooLarge(bytes) if bytes > 100));
    assert_eq!(error.name(), "too_large");
}
