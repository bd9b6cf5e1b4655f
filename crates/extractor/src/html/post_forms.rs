//! The forms of a page that are sent with POST, such as login forms.

use super::decoded_page::DecodedPage;
use super::element_name;
use super::tag_consumer::{Namespace, TagConsumer, TagContext};
use super::tag_dispatcher::walk;
use super::tokenizer::{Tag, TextBetweenTags};
use crate::reading_limits::ReadingLimits;

/// Maximum number of forms to read from a page.
/// Beyond the limit: later forms are ignored.
const MAX_FORMS: usize = 100;
/// Maximum number of fields to read from a form.
/// Beyond the limit: later fields are ignored.
const MAX_FORM_FIELDS: usize = 256;
/// Maximum bytes of a form field's name and value.
/// Beyond the limit: the field is ignored.
const MAX_FORM_VALUE_BYTES: usize = 16 << 10;

/// A form that is sent with POST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostForm {
    /// The `action` as written. Empty if the form is sent to the URL of its page.
    pub action: String,
    /// Names and values of the `input` elements that a browser would send if the user entered
    /// nothing and pressed the first submit button, in the order of the page. The button is
    /// included if it has a name, because many sites require it. Other buttons are not included.
    pub fields: Vec<(String, String)>,
    /// Names of the password fields.
    pub passwords: Vec<String>,
}

/// Returns the forms of a page that are sent with POST as `application/x-www-form-urlencoded`.
///
/// Never fails. Takes linear time.
///
/// ```
/// use crawl_extractor::{DecodedPage, read_post_forms};
///
/// let page = "<form method=post action=/in><input name=user><input type=hidden name=t value=7>";
/// let forms = read_post_forms(&DecodedPage::decode(page.as_bytes(), Some("text/html")));
/// assert_eq!(forms[0].action, "/in");
/// assert_eq!(forms[0].fields[1], ("t".to_owned(), "7".to_owned()));
/// ```
#[must_use]
pub fn read_post_forms(text: &DecodedPage<'_>) -> Vec<PostForm> {
    let reader = walk(text, ReadingLimits::default().attributes, Forms::default());
    reader.forms.into_iter().flatten().collect()
}

impl PostForm {
    /// Adds a field, unless it has no name or is beyond the limits. Returns whether it was added.
    fn add(&mut self, name: &str, value: &str) -> bool {
        let is_short = name.len() + value.len() <= MAX_FORM_VALUE_BYTES;
        let is_added = is_short && !name.is_empty() && self.fields.len() < MAX_FORM_FIELDS;
        if is_added {
            self.fields.push((name.to_owned(), value.to_owned()));
        }
        is_added
    }
}

#[derive(Default)]
struct Forms {
    /// The forms read so far. `None` stands for a form that is not sent with POST.
    forms: Vec<Option<PostForm>>,
    is_in_form: bool,
    /// Whether the form that is being read had a submit button.
    has_button: bool,
}

impl TagConsumer for Forms {
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        if at.space != Namespace::Html || at.in_template {
            return;
        }
        let attributes = tag.attributes;
        let get = |name| attributes.get(name).unwrap_or_default();
        // A form within another form is ignored.
        if tag.name == element_name::FORM && !self.is_in_form && self.forms.len() < MAX_FORMS {
            (self.is_in_form, self.has_button) = (true, false);
            let is_urlencoded = !["multipart/form-data", "text/plain"]
                .iter()
                .any(|other| get("enctype").eq_ignore_ascii_case(other));
            let is_sent = get("method").eq_ignore_ascii_case("post") && is_urlencoded;
            self.forms.push(is_sent.then(|| PostForm {
                action: get("action").trim().to_owned(),
                ..PostForm::default()
            }));
        }
        let is_field = tag.name == element_name::INPUT || tag.name == element_name::BUTTON;
        if !is_field || !self.is_in_form {
            return;
        }
        let kind = get("type").to_ascii_lowercase();
        let is_submit = match tag.name == element_name::INPUT {
            true => matches!(&*kind, "submit" | "image"),
            // A `button` without a `type` submits the form.
            false => !matches!(&*kind, "button" | "reset"),
        };
        let is_sent = match &*kind {
            _ if is_submit => !std::mem::replace(&mut self.has_button, true),
            _ if tag.name == element_name::BUTTON => false,
            "button" | "reset" | "file" => false,
            "checkbox" | "radio" => attributes.get("checked").is_some(),
            _ => true,
        };
        let value = match &*kind {
            "checkbox" | "radio" => attributes.get("value").unwrap_or("on"),
            _ => get("value"),
        };
        let Some(Some(form)) = self.forms.last_mut() else {
            return;
        };
        if !is_sent || attributes.get("disabled").is_some() {
            return;
        }
        let name = get("name");
        // An image button sends the coordinates of the click.
        if is_submit && kind == "image" {
            let prefix = match name {
                "" => String::new(),
                name => format!("{name}."),
            };
            form.add(&format!("{prefix}x"), "0");
            form.add(&format!("{prefix}y"), "0");
        } else if form.add(name, value) && kind == "password" {
            form.passwords.push(name.to_owned());
        }
    }

    fn end(&mut self, tag: &Tag<'_>, at: TagContext) {
        if tag.name == element_name::FORM && !at.in_template {
            self.is_in_form = false;
        }
    }

    fn text(&mut self, _text: &TextBetweenTags<'_>, _at: TagContext) {}
}

#[cfg(test)]
mod tests {
    use super::{DecodedPage, MAX_FORM_FIELDS, MAX_FORMS, read_post_forms};

    #[test]
    fn fields_for_passwords_are_named() {
        let page = "<form method=post><input name=user><input type=Password name=pass>";
        let forms = read_post_forms(&DecodedPage::decode(page.as_bytes(), Some("text/html")));
        assert_eq!(forms[0].passwords, ["pass"]);
    }

    fn forms(page: &str) -> Vec<(String, String)> {
        let forms = read_post_forms(&DecodedPage::decode(page.as_bytes(), Some("text/html")));
        let shown = forms.into_iter().map(|form| {
            let fields = form
                .fields
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            (form.action, fields.collect::<Vec<_>>().join("&"))
        });
        shown.collect()
    }

    #[test]
    fn html_4_10_22_4_fields_are_those_that_a_browser_sends() {
        let page = "<input name=before>\
            <form action=/search><input name=q></form>\
            <form method=POST action='/in?x=1&amp;y=2'><input name=user value='a&amp;b'>\
            <input type=PASSWORD name=password><input type=hidden name=csrf value=7>\
            <input type=checkbox name=stay checked><input type=checkbox name=no>\
            <button type=button name=show>x</button>\
            <template><input name=inert></form></template>\
            <input type=submit name=go value=1><input type=submit name=lost value=2>\
            <input type=file name=f><input value=nameless>\
            <input name=off disabled><form method=post><input name=nested></form>\
            <form method=post enctype=multipart/form-data><input name=file></form>\
            <template><form method=post action=/inert></form></template>\
            <form method=post></form>";
        let login = "user=a&b&password=&csrf=7&stay=on&go=1&nested=";
        assert_eq!(
            forms(page),
            [
                ("/in?x=1&y=2".to_owned(), login.to_owned()),
                (String::new(), String::new())
            ]
        );
    }

    #[test]
    fn html_4_10_21_2_the_first_submit_button_is_sent() {
        for (button, expected) in [
            ("<button name=login value=yes>Go</button>", "login=yes"),
            (
                "<button type=reset name=r></button><input type=submit name=s value=a>",
                "s=a",
            ),
            (
                "<input type=submit><input type=submit name=second value=2>",
                "",
            ),
            (
                "<input type=image name=i><button name=b></button>",
                "i.x=0&i.y=0",
            ),
            ("<input type=image>", "x=0&y=0"),
            (
                "<button disabled name=off></button><button name=b></button>",
                "",
            ),
        ] {
            let page = format!("<form method=post action=/in>{button}</form>");
            assert_eq!(forms(&page)[0].1, expected, "{button}");
        }
    }

    #[test]
    fn forms_and_fields_are_bounded() {
        let many = "<form method=post><input name=a></form>".repeat(MAX_FORMS + 1);
        assert_eq!(forms(&many).len(), MAX_FORMS);
        let long = format!("<form method=post>{}", "<input name=a>".repeat(1_000));
        assert_eq!(forms(&long)[0].1.split('&').count(), MAX_FORM_FIELDS);
        let large = format!(
            "<form method=post><input name=a value={}>",
            "x".repeat(1 << 20)
        );
        assert_eq!(forms(&large)[0].1, "");
    }
}
