//! The browser's processes: how they start and die, and that they end with our process.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use crawl_browser::{Browser, BrowserConfig, BrowserError, InterceptedRequest, RenderError};

use crate::in_memory_site::{LateScriptSite, PATIENT, Site, config, page, text_of};

/// Returns the ids and command lines of the processes whose command line contains `folder`.
fn processes_of(folder: &Path) -> Vec<(u32, String)> {
    let folder = folder.to_str().unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let processes = entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        command.contains(folder).then_some((id, command))
    });
    processes.collect()
}

fn kill(id: u32) {
    let status = Command::new("/bin/kill")
        .arg("-KILL")
        .arg(id.to_string())
        .status();
    assert!(status.unwrap().success());
}

/// Returns the id of the browser's main process, the only one without `--type=` in its command
/// line.
fn main_process(folder: &Path) -> u32 {
    let processes = processes_of(folder);
    let is_main = |command: &str| !command.contains("--type=") && !command.starts_with("/bin/sh");
    processes
        .iter()
        .find(|(_, command)| is_main(command))
        .unwrap()
        .0
}

fn profiles(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn a_closed_browser_leaves_neither_processes_nor_files() {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    assert!(
        browser.version().starts_with("HeadlessChrome/"),
        "{}",
        browser.version()
    );
    assert!(!processes_of(folder.path()).is_empty());
    let profiles_before = profiles(folder.path());
    assert_eq!(profiles_before.len(), 1);
    let mode = fs::metadata(&profiles_before[0])
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    browser.close().await;
    assert_eq!(profiles(folder.path()), Vec::<PathBuf>::new());
    assert_eq!(processes_of(folder.path()), []);
}

#[tokio::test]
async fn the_browser_inherits_no_variables() {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    let main = main_process(folder.path());
    let environment = fs::read(format!("/proc/{main}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment).into_owned();
    // Cargo sets this variable for tests, and the browser must not get it.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!environment.contains("CARGO_MANIFEST_DIR"), "{environment}");
    browser.close().await;
}

#[tokio::test]
async fn a_dead_browser_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    // Kill the browser while it waits for an answer.
    let path = folder.path().to_owned();
    let error = browser
        .render(
            page("<script src=/a.js></script>"),
            Arc::new(Killer(path, Process::Main)),
        )
        .await
        .unwrap_err();
    assert!(matches!(error, RenderError::Crashed(_)), "{error:?}");
    assert_eq!(error.name(), "browser_crashed");
    let after = browser
        .render(page("<p id=\"a\">again</p>"), Arc::new(Site::default()))
        .await;
    assert_eq!(text_of(&after.unwrap().dom, "a"), "again");
    browser.close().await;
    assert_eq!(profiles(folder.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_page_is_rendered_again_if_another_one_ended_the_browser() {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    let (patient, seen) = LateScriptSite::new();
    let innocent = browser.render(page(PATIENT), Arc::new(patient));
    let killer = async {
        seen.await.unwrap();
        let killer = Arc::new(Killer(folder.path().to_owned(), Process::Main));
        browser
            .render(page("<script src=/a.js></script>"), killer)
            .await
    };
    let (innocent, killer) = tokio::join!(innocent, killer);
    assert_eq!(text_of(&innocent.unwrap().dom, "a"), "fine");
    let error = killer.unwrap_err();
    assert!(matches!(error, RenderError::Crashed(_)), "{error:?}");
    browser.close().await;
}

#[tokio::test]
async fn a_dead_page_does_not_end_the_browser() {
    let folder = tempfile::tempdir().unwrap();
    let browser = Browser::launch(config(folder.path())).await.unwrap();
    let main = main_process(folder.path());
    let path = folder.path().to_owned();
    let error = browser
        .render(
            page("<script src=/a.js></script>"),
            Arc::new(Killer(path, Process::Renderers)),
        )
        .await
        .unwrap_err();
    assert!(matches!(error, RenderError::PageFailed(_)), "{error:?}");
    assert_eq!(error.name(), "page_failed");
    let after = browser
        .render(page("<p id=\"a\">fine</p>"), Arc::new(Site::default()))
        .await;
    assert_eq!(text_of(&after.unwrap().dom, "a"), "fine");
    assert_eq!(main_process(folder.path()), main);
    browser.close().await;
}

#[derive(Clone, Copy)]
enum Process {
    Main,
    Renderers,
}

/// Kills the browser that uses a profile below this folder, instead of answering a request.
struct Killer(PathBuf, Process);

impl crawl_browser::PageRequestHandler for Killer {
    fn request(&self, _: InterceptedRequest) -> crawl_browser::PageRequestFuture {
        match self.1 {
            Process::Main => kill(main_process(&self.0)),
            Process::Renderers => {
                let main = main_process(&self.0);
                for id in renderers_below(main) {
                    kill(id);
                }
            }
        }
        // Never answer: the page must still be waiting when the browser's death is noticed.
        Box::pin(std::future::pending())
    }
}

/// Returns the ids of the renderers in the process group of `main`. The command line of a renderer
/// doesn't contain the profile.
fn renderers_below(main: u32) -> Vec<u32> {
    let group = group_of(main);
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let renderers = entries.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let command = fs::read(entry.path().join("cmdline")).ok()?;
        let is_renderer = String::from_utf8_lossy(&command).contains("--type=renderer");
        (is_renderer && group_of(id) == group).then_some(id)
    });
    renderers.collect()
}

fn group_of(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(2)?
        .parse()
        .ok()
}

/// Does nothing on its own: the test `the_browser_ends_when_our_process_is_killed` runs it in a
/// child process and kills the process.
#[tokio::test]
#[ignore = "a part of another test"]
async fn child_that_is_killed() {
    let folder = PathBuf::from(crate::in_memory_site::variable("CRAWL_TEST_PROFILES"));
    let browser = Browser::launch(config(&folder)).await.unwrap();
    println!("\nstarted {}", browser.version());
    std::future::pending::<()>().await;
}

#[test]
fn the_browser_ends_when_our_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_that_is_killed", "--ignored", "--nocapture"])
        .env("CRAWL_TEST_PROFILES", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("started ") {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the child ended");
    }
    let main = main_process(folder.path());
    let group = group_of(main).unwrap();
    assert_ne!(Some(group), group_of(std::process::id()));
    child.kill().unwrap();
    child.wait().unwrap();
    // Wait for the group too, because the shell removes the profile before it kills the rest of the
    // group.
    while !members(group).is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(profiles(folder.path()), Vec::<PathBuf>::new());
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
}

fn members(group: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| group_of(*id) == Some(group)).collect()
}

#[tokio::test]
async fn errors_of_the_start_have_hints() {
    let folder = tempfile::tempdir().unwrap();
    let message = async |change: &dyn Fn(&mut BrowserConfig)| {
        let mut config = config(folder.path());
        change(&mut config);
        Browser::launch(config).await.unwrap_err().to_string()
    };
    let message_of_path =
        message(&|config| config.program = Some("/nowhere/chromium".into())).await;
    assert!(message_of_path.starts_with("there is no browser at /nowhere/chromium\nhint: "));
    let none = message(&|config| config.program = None).await;
    assert!(none.starts_with("no browser found\nhint: "), "{none}");
    let no_browser = message(&|config| config.program = Some("/bin/true".into())).await;
    assert!(
        no_browser.starts_with("the browser /bin/true does not answer"),
        "{no_browser}"
    );
    // With an empty environment, the loader can't find a library and prints the library's name.
    let broken = message(&|config| config.environment.clear()).await;
    assert!(
        broken.contains("does not answer: ") && broken.contains(".so"),
        "{broken}"
    );
    assert_eq!(profiles(folder.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_sandbox_is_never_left_out_silently() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.sandbox = true;
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let launched = Browser::launch(config).await;
    if is_root {
        let error = launched.unwrap_err();
        assert!(matches!(error, BrowserError::SandboxAsRoot), "{error:?}");
        assert!(error.to_string().contains("\nhint: "), "{error}");
        return;
    }
    // Launching may fail, because the browser refuses to start if the sandbox lacks user
    // namespaces.
    if let Ok(browser) = launched {
        let main = main_process(folder.path());
        let command = fs::read(format!("/proc/{main}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&command).contains("--no-sandbox"));
        browser.close().await;
    }
}
