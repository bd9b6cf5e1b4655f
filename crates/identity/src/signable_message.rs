//! The parts of a request or response that a signature can cover, and the signature base built from
//! them.

use sfv::{
    BareItem, Dictionary, InnerList, Item, ItemSerializer, ListEntry, ListSerializer, Parser,
};

/// The parts of a request that its signature can cover. For a signed response, contains the parts
/// of its request and the header fields of the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignableMessage {
    /// The method. Empty if unknown.
    pub method: String,
    /// The scheme of the URL. Empty means https.
    pub scheme: String,
    /// The host, with the port if it is not the scheme's default.
    pub authority: String,
    /// The path and the query, as in the request line. Empty if unknown.
    pub target: String,
    /// The header fields in order.
    pub fields: Vec<(String, String)>,
    /// Whether `fields` are those of a response. In the signature of a response, the parameter
    /// `req` marks components that belong to the request.
    pub is_response: bool,
}

/// The reason why the signature base (the signed text) can't be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureBaseError {
    /// The signature covers this component, but the message doesn't have it.
    #[error("it covers `{0}`, which the request doesn't have")]
    Missing(String),
    /// The signature covers this component, which this crate doesn't support.
    #[error("it covers `{0}`, which isn't supported")]
    Unsupported(String),
    /// The signature covers this component more than once.
    #[error("it covers `{0}` twice")]
    Twice(String),
}

impl SignableMessage {
    /// Returns all values of a header field, joined by commas (RFC 9421 section 2.1). `None` if the
    /// message doesn't have the field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<String> {
        let fields = self.fields.iter();
        let values = fields.filter(|(own, _)| own.eq_ignore_ascii_case(name));
        let values: Vec<&str> = values.map(|(_, value)| value.trim()).collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// Builds the signature base: the text to sign, which contains the covered components and their
    /// parameters (RFC 9421 section 2.5). `covered` is a member of `Signature-Input`.
    pub(crate) fn signature_base(&self, covered: &InnerList) -> Result<String, SignatureBaseError> {
        let mut lines: Vec<(String, String)> = Vec::new();
        for component in &covered.items {
            let id = component_id(component);
            if lines.iter().any(|(earlier, _)| *earlier == id) {
                return Err(SignatureBaseError::Twice(id));
            }
            let value = self.value(component, &id)?;
            lines.push((id, value));
        }
        lines.push(("\"@signature-params\"".to_owned(), params_text(covered)));
        let lines: Vec<String> = lines
            .iter()
            .map(|(id, value)| format!("{id}: {value}"))
            .collect();
        Ok(lines.join("\n"))
    }

    fn value(&self, component: &Item, id: &str) -> Result<String, SignatureBaseError> {
        let unsupported = || SignatureBaseError::Unsupported(id.to_owned());
        let missing = || SignatureBaseError::Missing(id.to_owned());
        let BareItem::String(name) = &component.bare_item else {
            return Err(unsupported());
        };
        if name.as_str().starts_with('@') {
            let params: Vec<_> = component.params.iter().collect();
            let is_of_request = match params.as_slice() {
                [] => !self.is_response,
                [(name, BareItem::Boolean(true))] => self.is_response && name.as_str() == "req",
                _ => false,
            };
            if !is_of_request {
                return Err(unsupported());
            }
            let derived = self.derived(name.as_str()).ok_or_else(unsupported)?;
            return Some(derived)
                .filter(|text| !text.is_empty())
                .ok_or_else(missing);
        }
        let text = self.field(name.as_str()).ok_or_else(missing)?;
        let mut params = component.params.iter();
        match (params.next(), params.next()) {
            (None, _) => Ok(text),
            (Some((param, BareItem::String(key))), None) if param.as_str() == "key" => {
                let dictionary = Parser::new(&text).parse::<Dictionary>().ok();
                let member = dictionary.and_then(|mut members| members.shift_remove(key.as_str()));
                Ok(entry_text(member.ok_or_else(missing)?))
            }
            _ => Err(unsupported()),
        }
    }

    /// Returns the value of a derived component, such as `@method` (RFC 9421 section 2.2). `None`
    /// if the component is not supported.
    fn derived(&self, name: &str) -> Option<String> {
        let scheme = self.scheme();
        let (path, query) = match self.target.split_once('?') {
            // An empty path is written as `/`.
            Some(("", query)) => ("/", format!("?{query}")),
            Some((path, query)) => (path, format!("?{query}")),
            None => (self.target.as_str(), "?".to_owned()),
        };
        Some(match name {
            "@method" => self.method.clone(),
            "@authority" => self.authority(),
            "@scheme" => scheme,
            "@request-target" => self.target.clone(),
            "@target-uri" => format!("{scheme}://{}{}", self.authority(), self.target),
            "@path" => path.to_owned(),
            "@query" => query,
            _ => return None,
        })
    }

    fn scheme(&self) -> String {
        match self.scheme.is_empty() {
            true => "https".to_owned(),
            false => self.scheme.to_ascii_lowercase(),
        }
    }

    /// Returns the authority in lower case, without the default port.
    #[must_use]
    pub fn authority(&self) -> String {
        let authority = self.authority.to_ascii_lowercase();
        let port = match self.scheme().as_str() {
            "http" => ":80",
            _ => ":443",
        };
        authority
            .strip_suffix(port)
            .unwrap_or(&authority)
            .to_owned()
    }
}

/// Formats a covered component as in the signature base, such as `"signature-agent";key="sig1"`.
pub(crate) fn component_id(component: &Item) -> String {
    let id = ItemSerializer::new().bare_item(&component.bare_item);
    id.parameters(&component.params).finish()
}

/// Formats the covered components and their parameters as in `Signature-Input`.
pub(crate) fn params_text(covered: &InnerList) -> String {
    entry_text(ListEntry::InnerList(covered.clone()))
}

fn entry_text(entry: ListEntry) -> String {
    let mut list = ListSerializer::new();
    list.members([&entry]);
    list.finish().unwrap_or_default()
}

#[cfg(test)]
#[path = "signable_message_tests.rs"]
mod tests;
