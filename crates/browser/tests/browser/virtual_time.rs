//! Virtual time: delays of answers don't change the result, and idle pages end early.

use std::sync::Arc;
use std::time::Duration;

use crawl_browser::Browser;

use crate::in_memory_site::{HoldingSite, Site, config, page, render, text_of, try_render};

/// A page that aborts its first fetch after 1 s and its second fetch after 2 s.
const IMPATIENT: &str = r#"<!doctype html><p id="a">-</p><p id="b">-</p><p id="clock">-</p>
<p id="random">-</p><script>
const get = (path, patience) => {
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), patience);
  return fetch(path, {signal: control.signal}).then(r => r.text())
    .catch(error => error.name).finally(() => clearTimeout(timer));
};
(async () => {
  a.textContent = await get('/a', 1000);
  await new Promise(next => setTimeout(next, 1500));
  b.textContent = await get('/b', 2000);
  clock.textContent = Math.round(performance.now() / 10) + ' ' + new Date().toISOString();
  random.textContent = Math.random();
})();
</script>"#;

#[tokio::test]
async fn gaps_between_requests_do_not_change_the_dom() {
    let dom_with_gap = async |millis| {
        let site = Site::with_gap(Duration::from_millis(millis));
        let site = site
            .add("/a", "text/plain", "one")
            .add("/b", "text/plain", "two");
        let rendered = render(IMPATIENT, &Arc::new(site)).await;
        assert_eq!(text_of(&rendered.dom, "a"), "one");
        assert_eq!(text_of(&rendered.dom, "b"), "two");
        assert_eq!(rendered.wall_hits, 0);
        rendered.dom
    };
    // In real time, the page would get only the first answer, or no answer.
    let (none, short, long) = tokio::join!(dom_with_gap(0), dom_with_gap(1200), dom_with_gap(2500));
    assert_eq!(none, short);
    assert_eq!(none, long);
}

#[tokio::test]
async fn a_page_receives_answers_in_their_order() {
    let html = "<p id=\"a\"></p><script>const note = number => { a.append(number) };
        for (let i = 0; i < 9; i += 3) {
            fetch(i).then(r => r.text()).then(eval);
            const script = document.createElement('script');
            script.src = i + 1;
            document.body.append(script);
            const request = new XMLHttpRequest();
            request.open('GET', i + 2);
            request.onload = () => eval(request.responseText);
            request.send();
        }</script>";
    let site = HoldingSite::default();
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    let rendered = browser.render(page(html), Arc::new(site)).await.unwrap();
    browser.close().await;
    assert_eq!(text_of(&rendered.dom, "a"), "876543210");
}

#[tokio::test]
async fn time_that_requests_wait_is_not_counted() {
    let site = Site::with_gap(Duration::from_secs(8)).add("/a", "text/plain", "one");
    let html = "<p id=a>-</p><script>fetch('/a').then(r => r.text()).then(t => a.textContent = t)</script>";
    let site = Arc::new(site);
    let rendered = try_render(html, &site, |config| {
        config.timeout = Duration::from_secs(7)
    })
    .await;
    assert_eq!(text_of(&rendered.unwrap().dom, "a"), "one");
}

#[tokio::test]
async fn a_page_waits_for_the_answers_to_its_workers() {
    let worker = "fetch('/a').then(r => r.text()).then(t => postMessage(t))";
    let site = Site::with_gap(Duration::from_millis(1500))
        .add("/worker.js", "text/javascript", worker)
        .add("/a", "text/plain", "one");
    let site = Arc::new(site);
    let html = "<p id=\"a\">-</p><script>new Worker('/worker.js').onmessage = message => { \
        a.textContent = message.data }</script>";
    let rendered = render(html, &site).await;
    assert_eq!(text_of(&rendered.dom, "a"), "one");
    assert_eq!(site.paths(), ["/worker.js", "/a"]);
    assert_eq!((rendered.requests, rendered.refused), (2, 0));
}

#[tokio::test]
async fn a_page_is_read_without_a_busy_worker() {
    let html = "<p id=\"a\">-</p><script>const worker = new Worker(URL.createObjectURL(new Blob(\
        ['postMessage(1); onmessage = () => { for (;;); }'])));\
        worker.onmessage = () => { worker.postMessage(1); a.textContent = 'fine' }</script>";
    let rendered = render(html, &Arc::default()).await;
    assert_eq!(text_of(&rendered.dom, "a"), "fine");
}

#[tokio::test]
async fn an_idle_page_ends_before_its_time() {
    let rendered = render("<p id=a>still</p>", &Arc::default()).await;
    assert_eq!(rendered.page_time, Duration::from_secs(4));
}

#[tokio::test]
async fn a_request_keeps_the_page_from_being_idle() {
    let site = Site::default().add("/news", "text/plain", "news");
    let site = Arc::new(site);
    // The first page makes its request at 4 s, just when a page without requests ends as idle.
    for (request, text, time) in [(4000, 0, 8), (2000, 2500, 8)] {
        let html = format!(
            "<p id=\"a\">-</p><script>setTimeout(() => fetch('/news').then(r => r.text()).then(\
            t => setTimeout(() => {{ a.textContent = t }}, {text})), {request})</script>"
        );
        let rendered = render(&html, &site).await;
        assert_eq!(text_of(&rendered.dom, "a"), "news");
        assert_eq!(rendered.page_time, Duration::from_secs(time));
    }
}

#[tokio::test]
async fn a_page_that_never_rests_ends_with_its_time() {
    let html = "<p id=a>0</p><script>setInterval(() => a.textContent++, 100)</script>";
    let rendered = render(html, &Arc::default()).await;
    assert_eq!(rendered.page_time, Duration::from_secs(10));
    assert_eq!(text_of(&rendered.dom, "a"), "100");
}

#[tokio::test]
async fn random_numbers_depend_on_the_seed() {
    let html = "<p id=a></p><script>a.textContent = Math.random()</script>";
    let with_seed = async |seed| {
        let rendered = try_render(html, &Arc::default(), |config| config.seed = seed).await;
        text_of(&rendered.unwrap().dom, "a").to_owned()
    };
    let one = with_seed(1).await;
    assert_eq!(one, with_seed(1).await);
    assert_ne!(one, with_seed(2).await);
}
