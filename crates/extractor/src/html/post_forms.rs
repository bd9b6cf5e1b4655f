//! Reads the forms of a page that are sent with POST, such as login forms.

use std::collections::HashMap;

use encoding_rs::{Encoding, UTF_8};

use super::decoded_page::DecodedPage;
use super::element_name;
use super::tag_consumer::{Namespace, TagConsumer, TagContext};
use super::tag_dispatcher::walk;
use super::tokenizer::{Tag, TagAttributes, TextBetweenTags};
use crate::query_encoding::form_encode;
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
/// Maximum number of `fieldset` elements within each other.
/// Beyond the limit: inner ones are ignored.
const MAX_FIELDSETS: usize = 32;

/// A form that is sent with POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostForm {
    /// The `action` as written. Empty if the form is sent to the URL of its page.
    pub action: String,
    /// Names and values of the fields that a browser would send if the user entered nothing and
    /// pressed the first submit button, in the order of the page (HTML Standard, "constructing the
    /// entry list"). The button is included if it has a name, because many sites require it. Other
    /// buttons are not included.
    pub fields: Vec<(String, String)>,
    /// Names of the password fields.
    pub passwords: Vec<String>,
    /// The charset that the form is sent in.
    encoding: &'static Encoding,
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
    let reader = FormReader::new(text.charset.encoding);
    let reader = walk(text, ReadingLimits::default().attributes, reader);
    reader.finish()
}

impl PostForm {
    /// Encodes `fields` (names and values) as `application/x-www-form-urlencoded` in the charset of
    /// the form (URL Standard, "application/x-www-form-urlencoded serializing").
    #[must_use]
    pub fn encoded<'a>(&self, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let mut encoded = String::new();
        for (name, value) in fields {
            if !encoded.is_empty() {
                encoded.push('&');
            }
            form_encode(&with_crlf(name), self.encoding, &mut encoded);
            encoded.push('=');
            form_encode(&with_crlf(value), self.encoding, &mut encoded);
        }
        encoded
    }

    /// Adds a field, unless it has no name or is beyond the limits. Returns whether it was added.
    fn add(&mut self, name: &str, value: &str) -> bool {
        let is_short = name.len() + value.len() <= MAX_FORM_VALUE_BYTES;
        let is_added = is_short && !name.is_empty() && self.fields.len() < MAX_FORM_FIELDS;
        if is_added {
            self.fields.push((name.to_owned(), value.to_owned()));
        }
        is_added
    }

    /// Adds the fields that a browser sends for a control.
    fn add_control(&mut self, control: &FormControl) {
        let name = &control.name;
        match &control.value {
            // An image button sends the coordinates of the click.
            ControlValue::ImageButton => {
                let prefix = match name.as_str() {
                    "" => String::new(),
                    name => format!("{name}."),
                };
                self.add(&format!("{prefix}x"), "0");
                self.add(&format!("{prefix}y"), "0");
            }
            ControlValue::Hidden(_) if name.eq_ignore_ascii_case("_charset_") => {
                self.add(name, self.encoding.output_encoding().name());
            }
            ControlValue::Password(value) => {
                if self.add(name, value) {
                    self.passwords.push(name.clone());
                }
            }
            ControlValue::Button(value)
            | ControlValue::Hidden(value)
            | ControlValue::Field(value) => drop(self.add(name, value)),
            ControlValue::Options(values) => values.iter().for_each(|value| {
                self.add(name, value);
            }),
        }
    }
}

/// Returns the text with all line ends as CRLF (HTML Standard, "converting an entry list to a list
/// of name-value pairs").
fn with_crlf(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    lines.replace('\n', "\r\n")
}

/// A form, sent with POST or not.
struct ReadForm {
    id: String,
    /// `None` if the form is not sent with POST.
    post: Option<PostForm>,
    /// Whether the form's first submit button was found.
    has_button: bool,
}

/// The form that a control belongs to.
enum FormOwner {
    /// The form with this number on the page, from 0.
    Number(usize),
    /// The form with this `id`, which may come later on the page.
    Id(String),
}

/// A form control that is sent, or a submit button.
struct FormControl {
    owner: FormOwner,
    name: String,
    value: ControlValue,
    is_disabled: bool,
}

enum ControlValue {
    Field(String),
    Hidden(String),
    Password(String),
    /// The values of the selected options of a `select`.
    Options(Vec<String>),
    /// A submit button.
    Button(String),
    ImageButton,
}

/// A `select` or `textarea` whose content is being read.
enum OpenControl {
    Select(OpenSelect),
    Textarea(String),
}

#[derive(Default)]
struct OpenSelect {
    has_multiple: bool,
    /// Whether the browser shows the `select` as a list box instead of a drop-down list. In a list
    /// box, all options can be unselected.
    is_list: bool,
    options: Vec<SelectOption>,
    is_in_option: bool,
    is_group_disabled: bool,
}

struct SelectOption {
    /// The `value` attribute. `None` if the value is the text.
    value: Option<String>,
    text: String,
    is_selected: bool,
    is_disabled: bool,
}

impl OpenSelect {
    /// Returns the values of the options that a browser selects and sends.
    fn values(self) -> Vec<String> {
        let mut selected: Vec<_> = self.options.iter().filter(|o| o.is_selected).collect();
        if !self.has_multiple {
            // Without `multiple`, only the last selected option stays selected. A drop-down list
            // without a selected option selects the first option that isn't disabled.
            let first = self.options.iter().find(|option| !option.is_disabled);
            let first = first.filter(|_| !self.is_list);
            selected = selected.pop().or(first).into_iter().collect();
        }
        let sent = selected.into_iter().filter(|option| !option.is_disabled);
        sent.map(SelectOption::value).collect()
    }
}

impl SelectOption {
    fn value(&self) -> String {
        let text = || {
            self.text
                .split_ascii_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        self.value.clone().unwrap_or_else(text)
    }
}

/// An open `fieldset`.
struct OpenFieldset {
    is_disabled: bool,
    has_legend: bool,
    /// Whether the first `legend` of the `fieldset` is open. The `fieldset` never disables controls
    /// in this `legend`.
    is_in_legend: bool,
}

struct FormReader {
    /// The charset of the page.
    encoding: &'static Encoding,
    forms: Vec<ReadForm>,
    open_form: Option<usize>,
    /// The controls of all forms, in the order of the page.
    controls: Vec<FormControl>,
    /// The control that is being read. It is the last one in `controls`.
    open_control: Option<OpenControl>,
    fieldsets: Vec<OpenFieldset>,
    /// Number of open fieldsets that are ignored, because they are nested deeper than
    /// [`MAX_FIELDSETS`].
    ignored_fieldsets: u32,
    /// Number of open `datalist` elements. Controls in them are not sent.
    datalists: u32,
}

impl FormReader {
    fn new(encoding: &'static Encoding) -> FormReader {
        FormReader {
            encoding,
            forms: Vec::new(),
            open_form: None,
            controls: Vec::new(),
            open_control: None,
            fieldsets: Vec::new(),
            ignored_fieldsets: 0,
            datalists: 0,
        }
    }

    /// Adds to each form the controls that a browser would send, and returns the forms that are
    /// sent with POST.
    fn finish(mut self) -> Vec<PostForm> {
        self.close_control();
        let mut by_id = HashMap::new();
        for (number, form) in self.forms.iter().enumerate() {
            by_id.entry(form.id.clone()).or_insert(number);
        }
        for control in &self.controls {
            let number = match &control.owner {
                FormOwner::Number(number) => Some(*number),
                FormOwner::Id(id) => by_id.get(id).copied().filter(|_| !id.is_empty()),
            };
            let Some(form) = number.map(|number| &mut self.forms[number]) else {
                continue;
            };
            let is_button = matches!(
                control.value,
                ControlValue::Button(_) | ControlValue::ImageButton
            );
            let is_other_button = is_button && std::mem::replace(&mut form.has_button, true);
            if let Some(post) = &mut form.post
                && !is_other_button
                && !control.is_disabled
            {
                post.add_control(control);
            }
        }
        self.forms
            .into_iter()
            .filter_map(|form| form.post)
            .collect()
    }

    fn open_form(&mut self, attributes: TagAttributes<'_>) {
        let get = |name| attributes.get(name).unwrap_or_default();
        let is_urlencoded = !["multipart/form-data", "text/plain"]
            .iter()
            .any(|other| get("enctype").eq_ignore_ascii_case(other));
        let is_sent = get("method").eq_ignore_ascii_case("post") && is_urlencoded;
        let post = is_sent.then(|| PostForm {
            action: get("action").trim().to_owned(),
            fields: Vec::new(),
            passwords: Vec::new(),
            encoding: encoding_of_form(attributes.get("accept-charset"), self.encoding),
        });
        self.open_form = Some(self.forms.len());
        self.forms.push(ReadForm {
            id: get("id").into(),
            post,
            has_button: false,
        });
    }

    /// Adds a control, unless it belongs to no form or is in a `datalist`. Returns whether it was
    /// added.
    fn add(&mut self, attributes: TagAttributes<'_>, value: ControlValue) -> bool {
        let owner = match attributes.get("form") {
            Some(id) => Some(FormOwner::Id(id.into())),
            None => self.open_form.map(FormOwner::Number),
        };
        let is_bounded = self.controls.len() < MAX_FORMS * MAX_FORM_FIELDS;
        let Some(owner) = owner.filter(|_| self.datalists == 0 && is_bounded) else {
            return false;
        };
        let in_disabled = |set: &OpenFieldset| set.is_disabled && !set.is_in_legend;
        let is_disabled =
            attributes.get("disabled").is_some() || self.fieldsets.iter().any(in_disabled);
        self.controls.push(FormControl {
            owner,
            name: attributes.get("name").unwrap_or_default().into(),
            value,
            is_disabled,
        });
        true
    }

    fn input(&mut self, attributes: TagAttributes<'_>) {
        let value = attributes.get("value").map(String::from);
        let is_checked = attributes.get("checked").is_some();
        let kind = attributes
            .get("type")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let line = |value: Option<String>| value.unwrap_or_default().replace(['\r', '\n'], "");
        let value = match &*kind {
            "submit" => ControlValue::Button(value.unwrap_or_default()),
            "image" => ControlValue::ImageButton,
            "checkbox" | "radio" if is_checked => {
                ControlValue::Field(value.unwrap_or_else(|| "on".to_owned()))
            }
            "checkbox" | "radio" | "button" | "reset" => return,
            // A file field sends the name of the chosen file. No file is chosen, so the name is
            // empty.
            "file" => ControlValue::Field(String::new()),
            "hidden" => ControlValue::Hidden(value.unwrap_or_default()),
            "password" => ControlValue::Password(line(value)),
            "email" | "url" => ControlValue::Field(line(value).trim().to_owned()),
            _ => ControlValue::Field(line(value)),
        };
        self.add(attributes, value);
    }

    fn button(&mut self, attributes: TagAttributes<'_>) {
        let kind = attributes.get("type").unwrap_or_default();
        let is_submit = !["button", "reset"]
            .iter()
            .any(|other| kind.eq_ignore_ascii_case(other));
        if is_submit {
            let value = attributes.get("value").unwrap_or_default().into();
            self.add(attributes, ControlValue::Button(value));
        }
    }

    fn select(&mut self, attributes: TagAttributes<'_>) {
        let has_multiple = attributes.get("multiple").is_some();
        let size = attributes
            .get("size")
            .and_then(|size| size.trim().parse::<u32>().ok());
        if self.add(attributes, ControlValue::Options(Vec::new())) {
            self.open_control = Some(OpenControl::Select(OpenSelect {
                has_multiple,
                is_list: size.is_some_and(|size| size > 1),
                ..OpenSelect::default()
            }));
        }
    }

    fn textarea(&mut self, attributes: TagAttributes<'_>) {
        if self.add(attributes, ControlValue::Field(String::new())) {
            self.open_control = Some(OpenControl::Textarea(String::new()));
        }
    }

    /// Stores the value of the control that was being read.
    fn close_control(&mut self) {
        let value = match self.open_control.take() {
            Some(OpenControl::Select(select)) => ControlValue::Options(select.values()),
            // A line feed at the start is dropped (HTML Standard 13.2.6.4.7).
            Some(OpenControl::Textarea(text)) => {
                ControlValue::Field(text.strip_prefix('\n').unwrap_or(&text).to_owned())
            }
            None => return,
        };
        if let Some(control) = self.controls.last_mut() {
            control.value = value;
        }
    }

    /// Processes the start of an element in an open `select`.
    fn start_in_select(select: &mut OpenSelect, tag: &Tag<'_>) {
        let is_disabled = tag.attributes.get("disabled").is_some();
        match tag.name {
            element_name::OPTGROUP => {
                select.is_in_option = false;
                select.is_group_disabled = is_disabled;
            }
            element_name::OPTION if select.options.len() < MAX_FORM_FIELDS => {
                select.is_in_option = true;
                select.options.push(SelectOption {
                    value: tag.attributes.get("value").map(String::from),
                    text: String::new(),
                    is_selected: tag.attributes.get("selected").is_some(),
                    is_disabled: is_disabled || select.is_group_disabled,
                });
            }
            element_name::OPTION => select.is_in_option = false,
            _ => {}
        }
    }
}

/// Returns the charset to send a form in (HTML Standard, "picking an encoding for the form").
fn encoding_of_form(accept_charset: Option<&str>, of_page: &'static Encoding) -> &'static Encoding {
    let Some(labels) = accept_charset else {
        return of_page;
    };
    let mut labels = labels.split_ascii_whitespace();
    let encoding = labels.find_map(|label| Encoding::for_label(label.as_bytes()));
    encoding.unwrap_or(UTF_8)
}

impl TagConsumer for FormReader {
    fn start(&mut self, tag: &Tag<'_>, at: TagContext) {
        if at.space != Namespace::Html || at.in_template {
            return;
        }
        let attributes = tag.attributes;
        if let Some(OpenControl::Select(select)) = &mut self.open_control {
            FormReader::start_in_select(select, tag);
        }
        match tag.name {
            // A form within another form is ignored.
            element_name::FORM if self.open_form.is_none() && self.forms.len() < MAX_FORMS => {
                self.open_form(attributes);
            }
            element_name::FIELDSET if self.fieldsets.len() == MAX_FIELDSETS => {
                self.ignored_fieldsets = self.ignored_fieldsets.saturating_add(1);
            }
            element_name::FIELDSET => {
                self.fieldsets.push(OpenFieldset {
                    is_disabled: attributes.get("disabled").is_some(),
                    has_legend: false,
                    is_in_legend: false,
                });
            }
            element_name::LEGEND => {
                if let Some(set) = self.fieldsets.last_mut().filter(|set| !set.has_legend) {
                    (set.has_legend, set.is_in_legend) = (true, true);
                }
            }
            element_name::DATALIST => self.datalists = self.datalists.saturating_add(1),
            // A `select` within another `select` ends the outer one. A `button` within a `select`
            // is not a submit button, but shows the `select`.
            element_name::SELECT if self.open_control.is_some() => self.close_control(),
            element_name::BUTTON if self.open_control.is_some() => {}
            element_name::INPUT
            | element_name::BUTTON
            | element_name::SELECT
            | element_name::TEXTAREA => {
                self.close_control();
                match tag.name {
                    element_name::INPUT => self.input(attributes),
                    element_name::BUTTON => self.button(attributes),
                    element_name::SELECT => self.select(attributes),
                    _ => self.textarea(attributes),
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: &Tag<'_>, at: TagContext) {
        if at.space != Namespace::Html || at.in_template {
            return;
        }
        match tag.name {
            element_name::FORM => self.open_form = None,
            element_name::FIELDSET if self.ignored_fieldsets > 0 => self.ignored_fieldsets -= 1,
            element_name::FIELDSET => drop(self.fieldsets.pop()),
            element_name::LEGEND => {
                if let Some(set) = self.fieldsets.last_mut() {
                    set.is_in_legend = false;
                }
            }
            element_name::DATALIST => self.datalists = self.datalists.saturating_sub(1),
            element_name::SELECT | element_name::TEXTAREA => self.close_control(),
            element_name::OPTION | element_name::OPTGROUP => {
                if let Some(OpenControl::Select(select)) = &mut self.open_control {
                    select.is_in_option = false;
                    select.is_group_disabled &= tag.name == element_name::OPTION;
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &TextBetweenTags<'_>, at: TagContext) {
        let target = match &mut self.open_control {
            Some(OpenControl::Textarea(value)) => Some(value),
            Some(OpenControl::Select(select)) if select.is_in_option && !at.raw => {
                select.options.last_mut().map(|option| &mut option.text)
            }
            _ => None,
        };
        if let Some(target) = target.filter(|target| target.len() <= MAX_FORM_VALUE_BYTES) {
            text.parts(|part| target.push_str(part));
        }
    }
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
        let login = "user=a&b&password=&csrf=7&stay=on&go=1&f=&nested=";
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
    fn html_4_10_10_the_selected_options_are_sent() {
        for (options, expected) in [
            (
                "<select name=s><option>first<option value=2 selected>x</select>",
                "s=2",
            ),
            (
                "<select name=s><option> a \n b </option><option>c</select>",
                "s=a b",
            ),
            (
                "<select name=s><option disabled>a<optgroup disabled><option>b</optgroup><option>c",
                "s=c",
            ),
            (
                "<select name=s><option selected disabled>a<option>b</select>",
                "",
            ),
            (
                "<select name=s><option selected>a<option selected>b</select>",
                "s=b",
            ),
            (
                "<select name=s multiple><option selected>a<option>b<option selected>c</select>",
                "s=a&s=c",
            ),
            ("<select name=s size=2><option>a<option>b</select>", ""),
            ("<select name=s><option value=''>a</select>", "s="),
            (
                "<select name=s><option>a &amp; b<input name=i value=1>",
                "s=a & b&i=1",
            ),
            (
                "<select name=s><button name=b>x</button><option>a</select>",
                "s=a",
            ),
            ("<select name=s></select>", ""),
            ("<select name=s disabled><option>a</select>", ""),
        ] {
            let page = format!("<form method=post>{options}</form>");
            assert_eq!(forms(&page)[0].1, expected, "{options}");
        }
    }

    #[test]
    fn html_4_10_22_4_all_controls_of_a_form_are_sent() {
        for (controls, expected) in [
            (
                "<textarea name=t>\n a &lt;b>\nc</textarea><input name=i>",
                "t= a <b>\nc&i=",
            ),
            (
                "<fieldset disabled><input name=a><select name=b><option>x</select></fieldset>",
                "",
            ),
            (
                "<fieldset disabled><legend><input name=a></legend><legend><input name=b></legend>\
                 <fieldset><input name=c></fieldset></fieldset><input name=d>",
                "a=&d=",
            ),
            (
                "<datalist><input name=a><option>x</datalist><input name=b>",
                "b=",
            ),
            (
                "<input name=a value='x&#13;y'><input type=email name=b value=' m@e '>",
                "a=xy&b=m@e",
            ),
            ("<input type=hidden name=a value='x&#13;y'>", "a=x\ry"),
            (
                "<input type=hidden name=_Charset_ value=x>",
                "_Charset_=UTF-8",
            ),
            ("<input name=_charset_ value=x>", "_charset_=x"),
            (
                "<input name=elsewhere form=other><input name=none form=''>",
                "",
            ),
        ] {
            let page = format!("<form method=post>{controls}</form>");
            assert_eq!(forms(&page)[0].1, expected, "{controls}");
        }
        // The attribute `form` names the form of a control anywhere on the page.
        let page = "<input form=f name=a><button form=f name=go></button><form method=post id=f>\
            <input name=b><button name=lost></button></form><form id=f method=post></form>\
            <select form=f name=c><option>1</select>";
        assert_eq!(forms(page)[0].1, "a=&go=&b=&c=1");
        assert_eq!(forms(page)[1].1, "");
    }

    #[test]
    fn html_4_10_22_5_a_form_is_sent_in_its_charset() {
        let fields = [("n\u{e9}", "a b*~\u{20ac}\n\u{4e2d}\r\n")];
        let utf_8 = "n%C3%A9=a+b*%7E%E2%82%AC%0D%0A%E4%B8%AD%0D%0A";
        let latin = "n%E9=a+b*%7E%80%0D%0A%26%2320013%3B%0D%0A";
        for (content_type, accept_charset, expected) in [
            ("text/html; charset=utf-8", "", utf_8),
            ("text/html; charset=iso-8859-1", "", latin),
            ("text/html; charset=utf-16le", "", utf_8),
            (
                "text/html; charset=utf-8",
                "accept-charset='x ISO-8859-1 utf-8'",
                latin,
            ),
            (
                "text/html; charset=iso-8859-1",
                "accept-charset=unknown",
                utf_8,
            ),
        ] {
            let page = format!("<form method=post {accept_charset}></form>");
            let mut bytes = page.clone().into_bytes();
            if content_type.contains("utf-16") {
                bytes = page.encode_utf16().flat_map(u16::to_le_bytes).collect();
            }
            let forms = read_post_forms(&DecodedPage::decode(&bytes, Some(content_type)));
            assert_eq!(
                forms[0].encoded(fields),
                expected,
                "{content_type} {accept_charset}"
            );
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
