//! Parts common to all pages: head, style, skip link.

use maud::{DOCTYPE, Markup, html};

use crate::serve::server_state::ServerState;

/// Renders an HTML page around a given body: its head with title, style and script.
pub(super) struct PageLayout<'a> {
    app: &'a ServerState,
    title: &'a str,
    script: Option<&'static str>,
}

impl<'a> PageLayout<'a> {
    pub(super) fn new(app: &'a ServerState, title: &'a str) -> PageLayout<'a> {
        PageLayout {
            app,
            title,
            script: None,
        }
    }

    /// Sets the script of the page: the name of an asset.
    pub(super) fn script(self, name: &'static str) -> PageLayout<'a> {
        PageLayout {
            script: Some(name),
            ..self
        }
    }

    /// Renders the page with this body.
    pub(super) fn page(&self, body: Markup) -> Markup {
        let assets = &self.app.assets;
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    link rel="icon" href=(assets.path("icon.svg")) type="image/svg+xml";
                    link rel="stylesheet" href=(assets.path("page.css"));
                    @if let Some(script) = self.script {
                        script src=(assets.path(script)) defer {}
                        script src=(assets.path("dialog.js")) defer {}
                    }
                }
                body { (body) }
            }
        }
    }
}
