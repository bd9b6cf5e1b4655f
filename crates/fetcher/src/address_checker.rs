//! Decides which addresses may be connected to: those of public servers, and those that the
//! operator allowed.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use crawl_weburl::{
    AddressClass, CanonicalUrl, class_of_host, classify, host_address, without_trailing_dot,
};

/// Decides which addresses may be connected to, by the addresses that the operator allowed.
#[derive(Debug, Default)]
pub(crate) struct AddressChecker {
    allow_private: bool,
    refuse_public: bool,
    /// Hosts in URLs that the operator typed, paired with each allowed port.
    typed: HashSet<(String, u16)>,
    typed_names: HashSet<String>,
    /// The host of the proxy.
    proxy: Option<String>,
    /// Typed names that once had a public address. Such names lose the exemption for typed hosts,
    /// because the owner of a public server could point its name at any private address.
    public_names: Mutex<HashSet<String>>,
}

/// Whether the operator typed the name of a host, or the crawl found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypedOrFoundHost {
    /// The operator typed the host.
    Typed,
    /// The crawl found the host.
    Found,
}

/// Why an address is refused, passed on inside the HTTP client's errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} is {}{}{}", place(host, address), words(*class), if *.was_public { ", and had a public address before" } else { "" })]
pub(crate) struct AddressRefused {
    pub(crate) host: String,
    pub(crate) address: String,
    pub(crate) class: AddressClass,
    /// Whether the host was typed and its name once had a public address.
    pub(crate) was_public: bool,
}

impl AddressChecker {
    pub(crate) fn new(
        allow_private: bool,
        allow_public: bool,
        typed: &[CanonicalUrl],
        proxy_host: Option<&str>,
    ) -> AddressChecker {
        let lower = |name: &str| without_trailing_dot(name).to_ascii_lowercase();
        AddressChecker {
            allow_private,
            refuse_public: !allow_public,
            typed: typed.iter().flat_map(typed_ports).collect(),
            typed_names: typed.iter().map(|url| lower(url.host())).collect(),
            proxy: proxy_host.map(lower),
            public_names: Mutex::default(),
        }
    }

    /// Returns whether the operator typed this host with this port.
    pub(crate) fn is_typed(&self, url: &CanonicalUrl) -> bool {
        !self.typed.is_empty()
            && self
                .typed
                .contains(&(without_trailing_dot(url.host()).to_owned(), url.port()))
    }

    /// Checks a URL if its host alone determines the address: a literal address, or a name under
    /// `localhost` (RFC 6761 section 6.3). Other names are checked after their look-up.
    pub(crate) fn judge_url(&self, url: &CanonicalUrl) -> Result<(), AddressRefused> {
        let Some(class) = class_of_host(url.host()) else {
            return Ok(());
        };
        self.judge(class, self.is_typed(url))
            .map_err(|class| AddressRefused {
                host: url.host().to_owned(),
                address: host_address(url.host()).map_or("localhost".to_owned(), |a| a.to_string()),
                class,
                was_public: false,
            })
    }

    /// Records an address of a name. The address may come from a look-up or from an earlier run.
    pub(crate) fn note_address(&self, name: &str, address: IpAddr) {
        let name = without_trailing_dot(name);
        if classify(address) == AddressClass::Public && self.typed_names.contains(name) {
            self.public_names().insert(name.to_owned());
        }
    }

    /// Records names known to have had a public address.
    pub(crate) fn note_public(&self, names: &[String]) {
        self.public_names().extend(names.iter().cloned());
    }

    /// Returns the typed names that have had a public address so far.
    pub(crate) fn public_names_seen(&self) -> Vec<String> {
        self.public_names().iter().cloned().collect()
    }

    /// Checks an address that a name resolved to. Call `note_address` before this for all current
    /// addresses of the name.
    pub(crate) fn judge_lookup(
        &self,
        name: &str,
        address: IpAddr,
        source: TypedOrFoundHost,
    ) -> Result<(), AddressRefused> {
        let class = classify(address);
        let was_public = self.public_names().contains(without_trailing_dot(name));
        let is_exempt = source == TypedOrFoundHost::Typed && !was_public;
        let is_proxy = self.proxy.as_deref() == Some(without_trailing_dot(name));
        self.judge(class, is_exempt || is_proxy)
            .map_err(|class| AddressRefused {
                host: name.to_owned(),
                address: address.to_string(),
                class,
                was_public: was_public && class != AddressClass::Public,
            })
    }

    /// Checks the address that a connection was actually made to.
    pub(crate) fn judge_peer(
        &self,
        url: &CanonicalUrl,
        address: IpAddr,
    ) -> Result<(), AddressRefused> {
        let source = match self.is_typed(url) {
            true => TypedOrFoundHost::Typed,
            false => TypedOrFoundHost::Found,
        };
        self.judge_lookup(url.host(), address, source)
    }

    fn judge(&self, class: AddressClass, is_exempt: bool) -> Result<(), AddressClass> {
        match class {
            AddressClass::Public if self.refuse_public => Err(class),
            AddressClass::Public => Ok(()),
            _ if is_exempt => Ok(()),
            AddressClass::Loopback | AddressClass::Private if self.allow_private => Ok(()),
            other => Err(other),
        }
    }

    fn public_names(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        // The set is valid even if another thread panicked while it held the lock.
        let names = self.public_names.lock();
        names.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the host of a typed URL with each of its allowed ports: the port in the URL, or else
/// those of http and https, because servers redirect from one to the other.
pub(crate) fn typed_ports(url: &CanonicalUrl) -> impl Iterator<Item = (String, u16)> {
    let ports = match url.as_url().port() {
        Some(port) => vec![port],
        None => vec![80, 443],
    };
    let host = without_trailing_dot(url.host()).to_owned();
    ports.into_iter().map(move |port| (host.clone(), port))
}

/// Returns where a host is, unless its name is its address already.
fn place(host: &str, address: &str) -> String {
    let name = without_trailing_dot(host);
    let own = host_address(name).map_or(name.to_owned(), |own| own.to_string());
    match own == address {
        true => String::new(),
        false => format!("at {address}, "),
    }
}

fn words(class: AddressClass) -> &'static str {
    match class {
        AddressClass::Loopback => "an address of this machine",
        AddressClass::Private => "an address of a private network",
        AddressClass::Public => "a public address, and there is no contact",
        _ => "not the address of a single server",
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::*;

    fn check(rules: &AddressChecker, url: &str, expect: Result<(), &str>) {
        let verdict = rules.judge_url(&canonicalize(None, url).unwrap());
        let verdict = verdict.map_err(|reason| reason.to_string());
        assert_eq!(verdict, expect.map_err(str::to_owned), "{url}");
    }

    fn typed(urls: &[&str]) -> AddressChecker {
        let urls: Vec<_> = urls
            .iter()
            .map(|u| canonicalize(None, u).unwrap())
            .collect();
        AddressChecker::new(false, true, &urls, Some("proxy.lan"))
    }

    #[test]
    fn no_public_server_without_a_contact() {
        let typed = [canonicalize(None, "http://93.184.215.14/").unwrap()];
        let rules = AddressChecker::new(false, false, &typed, None);
        let reason = "93.184.215.14 is a public address, and there is no contact";
        check(&rules, "http://93.184.215.14/", Err(reason));
        let public = "93.184.215.14".parse().unwrap();
        assert!(
            rules
                .judge_lookup("a.example", public, TypedOrFoundHost::Found)
                .is_err()
        );
    }

    #[test]
    fn literal_addresses_are_judged_in_the_url() {
        let rules = AddressChecker::default();
        check(&rules, "http://93.184.215.14/", Ok(()));
        check(&rules, "http://example.org/", Ok(()));
        let loopback = Err("127.0.0.1 is an address of this machine");
        check(&rules, "http://127.0.0.1/", loopback);
        check(&rules, "http://0x7f000001/", loopback);
        check(
            &rules,
            "http://[::ffff:10.0.0.1]:81/",
            Err("[::ffff:a00:1] is an address of a private network"),
        );
        check(
            &rules,
            "http://169.254.169.254/latest",
            Err("169.254.169.254 is an address of a private network"),
        );
        check(
            &rules,
            "http://x.localhost./",
            Err("x.localhost. is at localhost, an address of this machine"),
        );
        check(
            &rules,
            "http://localhost/",
            Err("localhost is an address of this machine"),
        );
    }

    #[test]
    fn a_typed_host_is_allowed_at_its_typed_port_only() {
        let rules = typed(&[
            "http://127.0.0.1:8080/",
            "http://localhost:81/",
            "http://10.1.2.3:9999/",
            "http://10.1.2.4/",
            "https://[fd00::1]/",
        ]);
        for open in [
            "http://127.0.0.1:8080/",
            "https://127.0.0.1:8080/robots.txt",
            "http://localhost.:81/",
            "http://10.1.2.3:9999/",
            "http://10.1.2.4/",
            "https://10.1.2.4/",
            "http://[fd00::1]/",
        ] {
            check(&rules, open, Ok(()));
        }
        for (closed, host, class) in [
            (
                "http://127.0.0.1:6379/",
                "127.0.0.1",
                "an address of this machine",
            ),
            (
                "http://localhost:82/",
                "localhost",
                "an address of this machine",
            ),
            (
                "http://10.1.2.3/",
                "10.1.2.3",
                "an address of a private network",
            ),
            (
                "http://10.1.2.4:6379/",
                "10.1.2.4",
                "an address of a private network",
            ),
        ] {
            let reason = format!("{host} is {class}");
            check(&rules, closed, Err(&reason));
        }
    }

    #[test]
    fn allow_private_does_not_allow_addresses_without_a_server() {
        let rules = AddressChecker::new(true, true, &[], None);
        check(&rules, "http://127.0.0.1/", Ok(()));
        check(&rules, "http://192.168.1.1/", Ok(()));
        check(
            &rules,
            "http://0.0.0.0/",
            Err("0.0.0.0 is not the address of a single server"),
        );
    }

    #[test]
    fn names_are_judged_by_their_addresses() {
        let rules = typed(&["http://intranet.example/"]);
        let private: IpAddr = "10.0.0.1".parse().unwrap();
        let judge = |name, source| {
            let judged = rules.judge_lookup(name, private, source);
            judged.map_err(|reason| reason.to_string())
        };
        assert_eq!(judge("intranet.example.", TypedOrFoundHost::Typed), Ok(()));
        assert_eq!(judge("proxy.lan", TypedOrFoundHost::Found), Ok(()));
        for (name, source) in [
            ("rebound.example", TypedOrFoundHost::Found),
            ("intranet.example", TypedOrFoundHost::Found),
        ] {
            let reason = format!("{name} is at 10.0.0.1, an address of a private network");
            assert_eq!(judge(name, source), Err(reason));
        }
        let public = "93.184.215.14".parse().unwrap();
        assert_eq!(
            rules.judge_lookup("rebound.example", public, TypedOrFoundHost::Found),
            Ok(())
        );
    }

    #[test]
    fn a_typed_name_with_a_past_public_address_may_not_be_private() {
        let rules = typed(&["http://seed.example/"]);
        let url = canonicalize(None, "http://seed.example/").unwrap();
        let home: IpAddr = "169.254.169.254".parse().unwrap();
        assert_eq!(rules.judge_peer(&url, home), Ok(()));
        rules.note_address("other.example", "93.184.215.14".parse().unwrap());
        rules.note_address("seed.example", "10.0.0.1".parse().unwrap());
        assert_eq!(rules.judge_peer(&url, home), Ok(()));
        rules.note_address("seed.example.", "93.184.215.14".parse().unwrap());
        let reason = "seed.example is at 169.254.169.254, an address of a private network, and had \
                   a public address before";
        let refused = rules.judge_peer(&url, home).unwrap_err();
        assert_eq!(refused.to_string(), reason);
    }
}
