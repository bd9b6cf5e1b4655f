//! The forms of a page that are sent with POST, such as login forms.

use super::consumer::{At, Consumer, Namespace};
use super::name;
use super::page_text::PageText;
use super::tag_walk::walk;
use super::tokenizer::{Tag, Text};
use crate::limits::Limits;

/// Maximum number of forms to read from a page.
/// Beyond the limit: later forms are ignored.
const MAX_FORMS: usize = 100;
/// Maximum number of fields to read from a form.
/// Beyond the limit: later fields are ignored.
const MAX_FORM_FIELDS: usize = 256;
/// Maximum bytes of the value of a form's field; longer values are dropped.
/// Beyond the limit: the field is ignored.
const MAX_FORM_VALUE_BYTES: usize = 16 << 10;

/// A form that is sent with POST.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostForm {
    /// The `action` as written. Empty if the form is sent to the URL of its page.
    pub action: String,
    /// Names and values of the `input` elements that a browser would send if the user entered
    /// nothing, in the order of the page. Buttons are not among the fields.
    pub fields: Vec<(String, String)>,
    /// Names of the fields into which a password is entered.
    pub passwords: Vec<String>,
}

/// Returns the forms of a page that are sent with POST as `application/x-www-form-urlencoded`.
///
/// Never fails. Takes linear time.
///
/// ```
/// use crawl_extractor::{PageText, read_post_forms};
///
/// let page = "<form method=post action=/in><input name=user><input type=hidden name=t value=7>";
/// let forms = read_post_forms(&PageText::decode(page.as_bytes(), Some("text/html")));
/// assert_eq!(forms[0].action, "/in");
/// assert_eq!(forms[0].fields[1], ("t".to_owned(), "7".to_owned()));
/// ```
#[must_use]
pub fn read_post_forms(text: &PageText<'_>) -> Vec<PostForm> {
    let reader = walk(text, Limits::default().attributes, Forms::default());
    reader.forms.into_iter().flatten().collect()
}

#[derive(Default)]
struct Forms {
    /// `None` stands for a form that is not sent with POST.
    forms: Vec<Option<PostForm>>,
    is_in_form: bool,
}

impl Consumer for Forms {
    fn start(&mut self, tag: &Tag<'_>, at: At) {
        if at.space != Namespace::Html {
            return;
        }
        let attributes = tag.attributes;
        let get = |name| attributes.get(name).unwrap_or_default();
        // A form within another form is ignored.
        if tag.name == name::FORM && !self.is_in_form && self.forms.len() < MAX_FORMS {
            self.is_in_form = true;
            let is_urlencoded = !["multipart/form-data", "text/plain"]
                .iter()
                .any(|other| get("enctype").eq_ignore_ascii_case(other));
            let is_sent = get("method").eq_ignore_ascii_case("post") && is_urlencoded;
            self.forms.push(is_sent.then(|| PostForm {
                action: get("action").trim().to_owned(),
                ..PostForm::default()
            }));
        }
        if tag.name == name::INPUT && self.is_in_form {
            let kind = get("type").to_ascii_lowercase();
            let is_sent = match &*kind {
                "submit" | "image" | "button" | "reset" | "file" => false,
                "checkbox" | "radio" => attributes.get("checked").is_some(),
                _ => true,
            };
            let (name, value) = (get("name"), get("value"));
            let value = match &*kind {
                "checkbox" | "radio" => attributes.get("value").unwrap_or("on"),
                _ => value,
            };
            let is_short = name.len() + value.len() <= MAX_FORM_VALUE_BYTES;
            if let Some(Some(form)) = self.forms.last_mut()
                && is_sent
                && is_short
                && !name.is_empty()
                && attributes.get("disabled").is_none()
                && form.fields.len() < MAX_FORM_FIELDS
            {
                if kind == "password" {
                    form.passwords.push(name.to_owned());
                }
                form.fields.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    fn end(&mut self, tag: &Tag<'_>, _at: At) {
        if tag.name == name::FORM {
            self.is_in_form = false;
        }
    }

    fn text(&mut self, _text: &Text<'_>, _at: At) {}
}

#[cfg(test)]
mod tests {
    use super::{MAX_FORM_FIELDS, MAX_FORMS, PageText, read_post_forms};

    #[test]
    fn fields_for_passwords_are_named() {
        let page = "<form method=post><input name=user><input type=Password name=pass>";
        let forms = read_post_forms(&PageText::decode(page.as_bytes(), Some("text/html")));
        assert_eq!(forms[0].passwords, ["pass"]);
    }

    fn forms(page: &str) -> Vec<(String, String)> {
        let forms = read_post_forms(&PageText::decode(page.as_bytes(), Some("text/html")));
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
            <input type=submit name=go value=1><input type=file name=f><input value=nameless>\
            <input name=off disabled><form method=post><input name=nested></form>\
            <form method=post enctype=multipart/form-data><input name=file></form>\
            <form method=post></form>";
        let login = "user=a&b&password=&csrf=7&stay=on&nested=";
        assert_eq!(
            forms(page),
            [
                ("/in?x=1&y=2".to_owned(), login.to_owned()),
                (String::new(), String::new())
            ]
        );
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
