//! Fills in the form of a login page.

use crawl_extractor::PostForm;
use crawl_fetcher::FormBody;
use crawl_weburl::{CanonicalUrl, canonicalize};

/// The form of a login page, not filled in yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoginForm {
    /// The URL that the form is sent to.
    pub(crate) action: CanonicalUrl,
    form: PostForm,
}

/// Returns the first of a page's forms that has fields with all the names in `fields`.
///
/// # Errors
/// No form has all these fields, or the form's address is unusable.
pub(crate) fn login_form(
    page: &CanonicalUrl,
    forms: Vec<PostForm>,
    fields: &[String],
) -> Result<LoginForm, String> {
    let has = |form: &PostForm, field: &String| form.fields.iter().any(|(name, _)| name == field);
    let form = forms
        .into_iter()
        .find(|form| fields.iter().all(|field| has(form, field)));
    let Some(form) = form else {
        let names = fields.iter().map(|field| format!("`{field}`"));
        let names = names.collect::<Vec<_>>().join(" and ");
        return Err(format!(
            "the login page has no form that is sent with POST and has {names}"
        ));
    };
    let action = match form.action.is_empty() {
        true => Ok(page.clone()),
        false => canonicalize(Some(page), &form.action),
    };
    Ok(LoginForm {
        action: action.map_err(|_| "the login form is sent to an address that isn't usable")?,
        form,
    })
}

impl LoginForm {
    /// Returns whether the value of a field is a secret. A user name is not a secret, because a
    /// page may contain it for other reasons. So only passwords are secrets. If the form has no
    /// password field, all fields are secrets.
    pub(crate) fn is_secret(&self, field: &str) -> bool {
        let passwords = &self.form.passwords;
        passwords.is_empty() || passwords.iter().any(|name| name == field)
    }

    /// Returns the body to send, in the charset of the form. It contains the form's own fields, with
    /// these credentials filled in.
    pub(crate) fn filled_in(&self, credentials: &[(String, String)]) -> FormBody {
        let fields = self.form.fields.iter().map(|(name, value)| {
            let own = credentials.iter().find(|(field, _)| field == name);
            (&**name, own.map_or(&**value, |(_, secret)| &**secret))
        });
        FormBody::from_encoded(self.form.encoded(fields))
    }
}

#[cfg(test)]
mod tests {
    use crawl_extractor::{DecodedPage, read_post_forms};
    use crawl_weburl::canonicalize;

    use super::login_form;

    fn filled_in(html: &str) -> Result<String, String> {
        let page = canonicalize(None, "https://a.example/login?next=%2F").unwrap();
        let forms = read_post_forms(&DecodedPage::decode(html.as_bytes(), Some("text/html")));
        let form = login_form(&page, forms, &["user".to_owned(), "pass".to_owned()])?;
        let secrets = [("user", "m&e"), ("pass", "s3cret")];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(format!(
            "{} {}",
            form.action,
            form.filled_in(&secrets).encoded()
        ))
    }

    #[test]
    fn the_form_with_all_fields_is_filled_in_and_keeps_its_other_fields() {
        let html = "<form method=post action=/find><input name=user></form>\
            <form method=post action=/in><input type=hidden name=csrf value='7 8'>\
            <input name=user value=x><input type=password name=pass></form>";
        let expected = "https://a.example/in csrf=7+8&user=m%26e&pass=s3cret";
        assert_eq!(filled_in(html).as_deref(), Ok(expected));
        // A field may be a `select` outside of the form.
        let html = "<form method=post action=/in id=f><input name=pass></form>\
            <select form=f name=user><option>a<option selected>b</select>";
        let expected = "https://a.example/in pass=s3cret&user=m%26e";
        assert_eq!(filled_in(html).as_deref(), Ok(expected));
        let own = filled_in("<form method=post><input name=user><input name=pass></form>");
        let expected = "https://a.example/login?next=%2F user=m%26e&pass=s3cret";
        assert_eq!(own.as_deref(), Ok(expected));
    }

    #[test]
    fn a_page_without_such_a_form_is_refused() {
        for html in [
            "",
            "<form><input name=user><input name=pass></form>",
            "<form method=post><input name=user></form>",
        ] {
            let expected =
                "the login page has no form that is sent with POST and has `user` and `pass`";
            assert_eq!(filled_in(html), Err(expected.to_owned()), "{html}");
        }
        let html = "<form method=post action=mailto:x><input name=user><input name=pass>";
        let expected = "the login form is sent to an address that isn't usable";
        assert_eq!(filled_in(html), Err(expected.to_owned()));
    }
}
