//! Cookies that are kept, and logins to sites: what is sent, what is archived, and that secrets
//! stay out of every file, log and message.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use crawl_archive::WarcReader;

use crate::harness::{Cmd, Dir, Ran, setup};

const PASSWORD: &str = "s3cret-word";
const TOKEN: &str = "t0ken-of-command";
/// The start of each session cookie's value. A number follows.
const SESSION: &str = "c00kie-of-session-";

/// A site whose pages need a session. `/1` to `/6` are pages, and each links to the next.
#[derive(Clone)]
struct Site {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The number of logins so far, which is also the number of the valid session.
    logins: u32,
    /// The number of pages served in the current session.
    served: u32,
    /// The number of pages after which a session ends. `None` if it never ends.
    lasts: Option<u32>,
    /// Whether the form redirects in an endless loop.
    has_endless_redirect: bool,
    /// All requests: method, path, cookies, `Authorization` and body of each.
    log: Vec<Seen>,
}

#[derive(Clone, Debug)]
struct Seen {
    method: String,
    path: String,
    cookie: String,
    authorization: String,
    body: String,
}

impl Site {
    fn start() -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let site = Site {
            port: listener.local_addr().unwrap().port(),
            state: Arc::default(),
        };
        let serving = site.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let serving = serving.clone();
                thread::spawn(move || serving.serve(stream.unwrap()));
            }
        });
        site
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn log(&self) -> Vec<Seen> {
        self.state.lock().unwrap().log.clone()
    }

    fn count(&self, method: &str, path: &str) -> usize {
        let log = self.log();
        let is_same = |seen: &&Seen| seen.method == method && seen.path == path;
        log.iter().filter(is_same).count()
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(read) if read > 2 => lines.push(line.trim_end().to_owned()),
                _ => break,
            }
        }
        let Some(first) = lines.first() else {
            return;
        };
        let field = |name: &str| {
            let mut values = lines.iter().filter_map(|line| {
                let (own, value) = line.split_once(':')?;
                own.eq_ignore_ascii_case(name)
                    .then(|| value.trim().to_owned())
            });
            values.next().unwrap_or_default()
        };
        let length = field("content-length").parse().unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let mut words = first.split(' ').map(str::to_owned);
        let seen = Seen {
            method: words.next().unwrap(),
            path: words.next().unwrap(),
            cookie: field("cookie"),
            authorization: field("authorization"),
            body: String::from_utf8(body).unwrap(),
        };
        let (status, fields, body) = self.answer(&seen);
        let head = format!(
            "HTTP/1.1 {status} x\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\
             Connection: close\r\n{fields}\r\n",
            body.len()
        );
        let _ = reader.into_inner().write_all((head + &body).as_bytes());
    }

    fn answer(&self, seen: &Seen) -> (u16, String, String) {
        let mut state = self.state.lock().unwrap();
        state.log.push(seen.clone());
        let path = seen.path.split('?').next().unwrap();
        let form = "<title>Log in</title><form method=post action=/in><input type=hidden name=csrf \
                    value=abc><input name=user><input type=password name=password></form>";
        match (&*seen.method, path) {
            (_, "/robots.txt" | "/sitemap.xml") => (404, String::new(), String::new()),
            (_, "/long" | "/huge" | "/many") => {
                let bytes = if path == "/huge" { 1_000_000 } else { 5_000 };
                let fields = match path {
                    "/many" => "Set-Cookie: a=1\r\n".repeat(3_000),
                    _ => format!("Set-Cookie: a={}\r\n", "x".repeat(bytes)),
                };
                (200, fields, "<p>tea</p>".to_owned())
            }
            // This page redirects to the login even in a valid session.
            ("GET", "/out") => (302, "Location: /login\r\n".to_owned(), String::new()),
            ("GET", "/login") if state.has_endless_redirect => {
                (302, "Location: /login?again\r\n".to_owned(), String::new())
            }
            ("GET", "/login") => (200, String::new(), form.to_owned()),
            ("POST", "/in") => {
                let is_right = seen.body == format!("csrf=abc&user=me&password={PASSWORD}");
                if !is_right {
                    return (200, String::new(), format!("Wrong. {form}"));
                }
                (state.logins, state.served) = (state.logins + 1, 0);
                let cookie = format!("sid={SESSION}{}; Path=/; HttpOnly", state.logins);
                let fields = format!("Location: /1\r\nSet-Cookie: {cookie}\r\n");
                (302, fields, String::new())
            }
            _ => {
                let is_session = seen
                    .cookie
                    .contains(&format!("sid={SESSION}{}", state.logins));
                let has_token = seen.authorization == format!("Bearer {TOKEN}");
                let is_over = state.lasts.is_some_and(|lasts| state.served >= lasts);
                let is_in = has_token || (state.logins > 0 && is_session && !is_over);
                if !is_in {
                    return match seen.authorization.is_empty() {
                        true => (302, "Location: /login\r\n".to_owned(), String::new()),
                        false => (401, String::new(), String::new()),
                    };
                }
                state.served += 1;
                let number: u32 = path[1..].parse().unwrap_or(99);
                let words: String = (0..40)
                    .map(|word| format!("w{} ", number * 100 + word))
                    .collect();
                // The page `/echo` contains the password.
                let words = match path {
                    "/echo" => format!("<b>{PASSWORD}</b> {words}"),
                    _ => words,
                };
                let next = match number {
                    1..=5 => format!("<a href=/{}>next</a>", number + 1),
                    _ => String::new(),
                };
                let page = format!(
                    "<title>Page {number}</title><p>{words}</p>{next}<a href=/logout>Log out</a>"
                );
                (200, String::new(), page)
            }
        }
    }
}

fn form_config(site: &Site) -> String {
    format!(
        "[site.\"127.0.0.1\".login]\nform = \"{}\"\nlogged-in = \">Log out<\"\n\
         fields = {{ user = \"env:USER_NAME\", password = \"env:PASSWORD\" }}\n",
        site.url("/login")
    )
}

const QUICK: [&str; 8] = [
    "--output",
    "c",
    "--delay",
    "1ms",
    "--delay-factor",
    "0",
    "--progress",
    "off",
];

/// Crawls the site with the settings in `c.toml` and a log.
fn crawl(cmd: &Cmd, args: &[&str]) -> Ran {
    let more = ["--log", "log", "-vv", "--index"];
    let args: Vec<&str> = args.iter().chain(&QUICK).chain(&more).copied().collect();
    cmd.run(&args)
}

fn paths(dir: &Dir) -> Vec<String> {
    let rows = dir.rows("c/pages.jsonl");
    let urls = rows
        .iter()
        .map(|row| row["url"].as_str().unwrap().to_owned());
    let paths = urls.map(|url| url.split_at(url.rfind('/').unwrap()).1.to_owned());
    let mut paths: Vec<_> = paths.filter(|path| path != "/sitemap.xml").collect();
    paths.sort();
    paths
}

/// Returns the contents of all files in a directory with archives unpacked, except for `state`.
fn all_text(dir: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "state") {
            text.push_str(&all_text(&path));
        } else if path.extension().is_some_and(|end| end == "gz") {
            for record in WarcReader::open(&path).unwrap() {
                text.push_str(&String::from_utf8_lossy(&record.unwrap().block));
            }
        } else if path.is_file() {
            text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
    text
}

fn check_secrets(dir: &Dir, ran: &Ran) {
    let shown = format!("{}{}{}", ran.stdout, ran.stderr, all_text(dir.path()));
    for secret in [PASSWORD, TOKEN, SESSION] {
        assert!(!shown.contains(secret), "{secret} is written");
    }
}

const ALL_PAGES: [&str; 6] = ["/1", "/2", "/3", "/4", "/5", "/6"];

#[test]
fn a_form_login_opens_the_pages_and_no_secret_is_written() {
    let (dir, mut cmd) = setup("login");
    let site = Site::start();
    cmd.env("USER_NAME", "me");
    cmd.env("PASSWORD", PASSWORD);
    dir.write("c.toml", &form_config(&site));
    let ran = crawl(&cmd, &[&site.url("/1"), "--config", "c.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(paths(&dir), ALL_PAGES);
    check_secrets(&dir, &ran);
    assert!(all_text(&dir.file("c")).contains("Cookie: [redacted]"));
    // The requests of the login are in `requests.jsonl` like any others, but their responses are
    // not archived.
    let requests = dir.rows("c/requests.jsonl");
    let purposes = requests.iter().filter(|row| row["purpose"] == "login");
    let shown: Vec<_> = purposes.map(|row| row["status"].clone()).collect();
    assert_eq!(shown, [200, 302, 200]);
    assert!(!all_text(&dir.file("c/archive")).contains("csrf"));
    // The link that would end the session is not followed.
    assert_eq!(site.count("GET", "/logout"), 0);
    let excluded = dir.rows("c/excluded.jsonl");
    assert_eq!(excluded.last().unwrap()["reason"], "action");
    for check in ["audit", "verify"] {
        assert_eq!(cmd.run(&[check, "c"]).code, 0, "{check}");
    }
    // Another run uses the session of this one.
    let again = crawl(&cmd, &["--recrawl"]);
    assert_eq!(
        (again.code, site.count("POST", "/in")),
        (0, 1),
        "{}",
        again.stderr
    );
    check_secrets(&dir, &again);
    let replayed = cmd.run(&["replay", "c", "--output", "r"]);
    assert_eq!(replayed.code, 2);
    let expected = "can't replay a crawl that logs in to 127.0.0.1";
    assert!(replayed.stderr.contains(expected), "{}", replayed.stderr);
}

#[test]
fn a_session_that_ends_in_the_middle_is_renewed_once_each_time() {
    let (dir, mut cmd) = setup("renewed");
    let site = Site::start();
    // A session ends after four pages.
    site.state.lock().unwrap().lasts = Some(4);
    cmd.env("USER_NAME", "me");
    cmd.env("PASSWORD", PASSWORD);
    dir.write("c.toml", &form_config(&site));
    let args = [&site.url("/1"), "--config", "c.toml", "--sitemaps", "off"];
    let ran = crawl(&cmd, &args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(paths(&dir), ALL_PAGES);
    let archived = all_text(&dir.file("c/archive"));
    assert!(!archived.contains("Location: /login") && !archived.contains("location: /login"));
    assert_eq!(site.count("POST", "/in"), 2);
    let requests = dir.rows("c/requests.jsonl");
    let out = requests.iter().filter(|row| row["failure"] == "logged_out");
    assert_eq!(out.count(), 1);
    check_secrets(&dir, &ran);
}

#[test]
fn a_wrong_password_stops_the_host_and_archives_nothing() {
    let (dir, mut cmd) = setup("wrong");
    let site = Site::start();
    cmd.env("USER_NAME", "me");
    cmd.env("PASSWORD", "wr0ng-word");
    dir.write("c.toml", &form_config(&site));
    let ran = crawl(&cmd, &[&site.url("/1"), "--config", "c.toml"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("its login was refused: "),
        "{}",
        ran.stderr
    );
    let hint = "`crawl control DIR unpark HOST`";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    assert_eq!(site.count("POST", "/in"), 1);
    assert_eq!(paths(&dir), [""; 0]);
    // While the credentials are unchanged, neither the next run nor the next round sends a login.
    let forms = site.count("GET", "/login");
    for args in [&[][..], &["--recrawl"]] {
        let same = crawl(&cmd, args);
        let expected = "the credentials have not changed since the site refused them at 20";
        assert!(same.stderr.contains(expected), "{}", same.stderr);
        assert_eq!(
            (site.count("POST", "/in"), site.count("GET", "/login")),
            (1, forms)
        );
    }
    // Unparking the host allows another login attempt.
    let host = format!("127.0.0.1:{}", site.port);
    let unparked = cmd.run(&["control", "c", "unpark", &host]);
    assert_eq!(unparked.code, 0, "{}", unparked.stderr);
    let again = crawl(&cmd, &[]);
    assert!(
        again.stderr.contains("its login was refused: "),
        "{}",
        again.stderr
    );
    assert_eq!(site.count("POST", "/in"), 2);
    for text in [&ran.stderr, &again.stderr, &all_text(dir.path())] {
        assert!(!text.contains("wr0ng-word"), "{text}");
    }
    // With the right password, the login succeeds.
    cmd.env("PASSWORD", PASSWORD);
    let right = crawl(&cmd, &[]);
    assert_eq!(right.code, 0, "{}", right.stderr);
    assert_eq!(paths(&dir), ALL_PAGES);
}

#[test]
fn a_page_that_always_looks_logged_out_does_not_stop_its_site() {
    let (dir, mut cmd) = setup("always-out");
    let site = Site::start();
    cmd.env("USER_NAME", "me");
    cmd.env("PASSWORD", PASSWORD);
    dir.write("c.toml", &form_config(&site));
    let seeds = [site.url("/out"), site.url("/1")];
    let ran = crawl(&cmd, &[&seeds[0], &seeds[1], "--config", "c.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut expected = ALL_PAGES.to_vec();
    expected.push("/out");
    assert_eq!(paths(&dir), expected);
    let rows = dir.rows("c/pages.jsonl");
    let row = rows.iter().find(|row| row["url"] == *seeds[0]).unwrap();
    assert_eq!(
        row["error"],
        "logged_out: it redirects to the login form, but other pages of the site are logged in"
    );
    assert!(site.count("POST", "/in") <= 2);
    // Once in each session. A page that was set aside isn't tried again.
    assert!(site.count("GET", "/out") <= 2);
}

#[test]
fn a_resumed_run_redacts_the_password_from_its_first_response_on() {
    let (dir, mut cmd) = setup("resumed-secret");
    let site = Site::start();
    cmd.env("USER_NAME", "me");
    cmd.env("PASSWORD", PASSWORD);
    dir.write("c.toml", &form_config(&site));
    let seeds = [site.url("/1"), site.url("/echo")];
    let limits = [
        "--config",
        "c.toml",
        "--max-pages",
        "1",
        "--sitemaps",
        "off",
    ];
    let ran = crawl(&cmd, &[&[&*seeds[0], &*seeds[1]], &limits[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let resumed = crawl(&cmd, &["--max-pages", "unlimited"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(site.count("POST", "/in"), 1);
    let rows = dir.rows("c/pages.jsonl");
    let row = rows.iter().find(|row| row["url"] == *seeds[1]).unwrap();
    assert_eq!(row["echoes_secret"], true);
    let searched = cmd.run(&["search", "c", "w9900"]);
    assert!(
        searched.stdout.contains("[redacted]"),
        "{}",
        searched.stdout
    );
    // Without the password, the site gets no request, because its pages could not be redacted.
    let broken = form_config(&site).replace("env:PASSWORD", "command:exit 3");
    dir.write("c.toml", &broken);
    let before = site.log().len();
    let failed = crawl(
        &cmd,
        &["--recrawl", "--revisit-least", "0s", "--config", "c.toml"],
    );
    assert!(
        failed.stderr.contains("the command `exit 3` failed"),
        "{}",
        failed.stderr
    );
    let pages = site.log()[before..]
        .iter()
        .filter(|seen| seen.path != "/robots.txt")
        .count();
    assert_eq!(pages, 0);
}

#[test]
fn redirects_of_a_login_without_end_have_an_outcome() {
    let (dir, mut cmd) = setup("endless");
    let site = Site::start();
    site.state.lock().unwrap().has_endless_redirect = true;
    cmd.env("USER_NAME", "me");
    cmd.env("PASSWORD", PASSWORD);
    dir.write("c.toml", &form_config(&site));
    let ran = crawl(&cmd, &[&site.url("/1"), "--config", "c.toml"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("it redirects more than 10 times"),
        "{}",
        ran.stderr
    );
    assert_eq!(paths(&dir), [""; 0]);
}

#[test]
fn a_token_comes_from_a_command() {
    let (dir, mut cmd) = setup("token");
    let site = Site::start();
    cmd.env("THE_TOKEN", TOKEN);
    // Commands in the settings don't get our own secrets.
    for name in ["CRAWL_SIGNATURE_KEY", "CRAWL_SERVE_TOKEN", "PGPASSWORD"] {
        cmd.env(name, "own-secret");
    }
    let command = "credential-command = \"echo $THE_TOKEN; echo x >> runs; env > environment\"";
    dir.write(
        "c.toml",
        &format!("[site.\"127.0.0.1\".login]\n{command}\n"),
    );
    let ran = crawl(&cmd, &[&site.url("/1"), "--config", "c.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(paths(&dir), ALL_PAGES);
    assert_eq!(dir.read("runs"), "x\n");
    let environment = dir.read("environment");
    assert!(environment.contains("THE_TOKEN="), "{environment}");
    assert!(!environment.contains("own-secret"), "{environment}");
    fs::remove_file(dir.file("environment")).unwrap();
    check_secrets(&dir, &ran);
    // With a wrong token, the command that prints the token runs once more, and the second 401 ends
    // the crawl of the host.
    fs::remove_dir_all(dir.file("c")).unwrap();
    cmd.env("THE_TOKEN", "another-token");
    let refused = crawl(&cmd, &[&site.url("/1"), "--config", "c.toml"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    let expected = "its login was refused: still logged out after a login";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert_eq!(paths(&dir), [""; 0]);
}

#[test]
fn a_selector_is_a_sign_too() {
    let (dir, mut cmd) = setup("selector");
    let site = Site::start();
    cmd.env("USER_NAME", "me");
    cmd.env("PASSWORD", PASSWORD);
    let sign = "logged-in = { select = \"a[href='/logout']\" }";
    let config = form_config(&site).replace("logged-in = \">Log out<\"", sign);
    dir.write("c.toml", &config);
    let ran = crawl(
        &cmd,
        &[&site.url("/1"), "--config", "c.toml", "--max-pages", "2"],
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // The next run reads the selector from `crawl.toml`.
    let resumed = crawl(&cmd, &["--max-pages", "unlimited"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(paths(&dir), ALL_PAGES);
    let checked = cmd.run(&["config", "--check", "c.toml"]);
    assert_eq!(checked.ok(), "c.toml: no problems found\n");
    dir.write("c.toml", &config.replace(sign, ""));
    let checked = cmd.run(&["config", "--check", "c.toml"]);
    assert_eq!(
        checked.ok(),
        "c.toml: no problems found\n\
         warning: [site.\"127.0.0.1\".login] has neither `logged-in` nor `logged-out`: only a 401 or \
         a redirect to the form shows that a session is over\n"
    );
}

#[test]
fn own_cookies_are_sent_together_with_those_of_the_login() {
    let (dir, mut cmd) = setup("own-cookies");
    let site = Site::start();
    cmd.env("USER_NAME", "me");
    cmd.env("PASSWORD", PASSWORD);
    let own = "[site.\"127.0.0.1\"]\ncookies = { consent = \"yes\" }\n";
    dir.write("c.toml", &format!("{own}{}", form_config(&site)));
    let ran = crawl(&cmd, &[&site.url("/1"), "--config", "c.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(paths(&dir), ALL_PAGES);
    let log = site.log();
    let page = log.iter().find(|seen| seen.path == "/3").unwrap();
    assert_eq!(page.cookie, format!("consent=yes; sid={SESSION}1"));
}

#[test]
fn imported_cookies_go_to_sites_that_keep_cookies() {
    let (dir, cmd) = setup("imported");
    let site = Site::start();
    site.state.lock().unwrap().logins = 7;
    let value = format!("{SESSION}7");
    let line = format!("127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t{value}\n");
    dir.write("cookies.txt", &line);
    let args = [&site.url("/1"), "--cookies", "cookies.txt"];
    let refused = crawl(&cmd, &args);
    assert_eq!(refused.code, 2);
    let hint = "hint: add `cookies = \"keep\"` to [site.\"127.0.0.1\"] in your settings file";
    assert!(refused.stderr.contains(hint), "{}", refused.stderr);
    dir.write("c.toml", "[site.\"127.0.0.1\"]\ncookies = \"keep\"\n");
    let args = [args[0], args[1], args[2], "--config", "c.toml"];
    // The cookie file is read at the first start only.
    let ran = crawl(&cmd, &[&args[..], &["--max-pages", "3"]].concat());
    fs::remove_file(dir.file("cookies.txt")).unwrap();
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    check_secrets(&dir, &ran);
    let resumed = crawl(&cmd, &["--max-pages", "unlimited"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    let paths = paths(&dir);
    assert!(
        ALL_PAGES
            .iter()
            .all(|path| paths.contains(&(*path).to_owned())),
        "{paths:?}"
    );
    dir.write("cookies.txt", "sid=s3cret-word\n");
    let broken = crawl(&cmd, &["--cookies", "cookies.txt"]);
    assert_eq!(broken.code, 2);
    let expected = "unusable --cookies `cookies.txt`: line 1: 1 fields between tabs";
    assert!(broken.stderr.contains(expected), "{}", broken.stderr);
    assert!(!broken.stderr.contains(PASSWORD));
}

#[test]
fn cookies_beyond_the_limits_have_named_outcomes() {
    let (dir, cmd) = setup("limits");
    let site = Site::start();
    dir.write("c.toml", "[site.\"127.0.0.1\"]\ncookies = \"keep\"\n");
    let seeds = ["/long", "/huge", "/many"].map(|path| site.url(path));
    let [long, huge, many] = &seeds;
    let args = [long, huge, many, "--config", "c.toml", "--sitemaps", "off"];
    let ran = crawl(&cmd, &args);
    assert!(ran.stderr.contains("too_long"), "{}", ran.stderr);
    let rows = dir.rows("c/requests.jsonl");
    let too_large = Some("headers_too_large");
    for (url, expected) in seeds.iter().zip([None, too_large, too_large]) {
        let row = rows.iter().find(|row| row["url"] == **url).unwrap();
        assert_eq!(row["failure"].as_str(), expected, "{url}");
    }
}

#[test]
fn a_killed_crawl_continues_in_its_session() {
    let (dir, mut cmd) = setup("killed");
    let site = Site::start();
    cmd.env("USER_NAME", "me");
    cmd.env("PASSWORD", PASSWORD);
    dir.write("c.toml", &form_config(&site));
    let seed = site.url("/1");
    let slow = [
        "--delay",
        "100ms",
        "--delay-factor",
        "0",
        "--progress",
        "off",
    ];
    let args = [&[&*seed, "--config", "c.toml", "--output", "c"], &slow[..]].concat();
    let commits = ["--commit-within", "10ms"];
    let mut child = cmd
        .command(&[&args[..], &commits].concat())
        .spawn()
        .unwrap();
    // Wait until pages of the session are committed, however long that takes.
    while fs::read_to_string(dir.file("c/pages.jsonl")).map_or(0, |rows| rows.lines().count()) < 2 {
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = crawl(&cmd, &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(paths(&dir), ALL_PAGES);
    assert_eq!(site.count("POST", "/in"), 1);
}

#[test]
fn unusable_logins_are_refused_by_name() {
    let (dir, cmd) = setup("refused");
    let (of_site, of_login) = ("[site.\"a.example\"]\n", "[site.\"a.example\".login]\n");
    let form = "form = \"https://www.a.example/\"\nfields = { p = \"command:true\" }\n";
    for (text, message) in [
        (
            format!("{of_site}cookies = \"yes\""),
            "`cookies`: must be \"keep\" or a table of cookies",
        ),
        (
            format!("{of_login}form = \"https://a.example/\"\nfields = {{ p = \"s3cret-word\" }}"),
            "must be `env:NAME` or `command:COMMAND`, not the secret itself",
        ),
        (
            format!("{of_login}logged-in = \"x\""),
            "unusable `login` in [site.\"a.example\".login]: it needs `form` and `fields`, or \
             `credential-command`",
        ),
        (format!("{of_login}forms = \"x\""), "unknown key `forms`"),
        (
            format!("{of_login}{form}logged-in = {{ select = \"a..b\" }}"),
            "unusable `logged-in` in [site.\"a.example\".login]: bad selector `a..b`",
        ),
        (
            format!("{of_login}{form}[site.\"www.a.example\"]\ncookies = \"keep\""),
            "`https://www.a.example/` belongs to [site.\"www.a.example\"], which has a session of \
             its own; move the login there",
        ),
        (
            format!("{of_site}basic-auth = \"a:b\"\n{of_login}credential-command = \"true\""),
            "the table sets `Authorization` too, and the token would replace it",
        ),
    ] {
        dir.write("c.toml", &text);
        let ran = cmd.run(&["--config", "c.toml", "http://127.0.0.1:1/"]);
        assert_eq!(ran.code, 2, "{text}");
        assert!(ran.stderr.contains(message), "{text}\n{}", ran.stderr);
        assert!(!ran.stderr.contains(PASSWORD), "{}", ran.stderr);
    }
}
