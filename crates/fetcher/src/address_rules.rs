//! Which addresses are asked: anyone's public server, and what the operator allowed.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use crawl_weburl::{
    AddressClass, CanonicalUrl, class_of_host, classify, host_address, without_trailing_dot,
};

/// Which addresses the operator allowed, and what names were seen to lead to.
#[derive(Debug, Default)]
pub(crate) struct AddressRules {
    allow_private: bool,
    refuse_public: bool,
    /// Hosts that the operator typed, each with the ports that were meant.
    typed: HashSet<(String, u16)>,
    typed_names: HashSet<String>,
    /// The host of the proxy.
    proxy: Option<String>,
    /// Names among the typed ones that had a public address once. Such a name is a public
    /// server's: whoever owns it could lead us to any private address by changing it.
    public_names: Mutex<HashSet<String>>,
}

/// The reason for which a name is looked up: the operator typed its host and port, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Typed,
    Met,
}

/// The reason why an address is not connected to. Travels through the client's errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} is at {address}, {}{}", words(*class), if *.was_public { ", and had a public address before" } else { "" })]
pub(crate) struct AddressRefused {
    pub(crate) host: String,
    pub(crate) address: String,
    pub(crate) class: AddressClass,
    /// The host was typed, and its name had a public address before.
    pub(crate) was_public: bool,
}

impl AddressRules {
    pub(crate) fn new(
        allow_private: bool,
        allow_public: bool,
        typed: &[CanonicalUrl],
        proxy_host: Option<&str>,
    ) -> AddressRules {
        let lower = |name: &str| without_trailing_dot(name).to_ascii_lowercase();
        AddressRules {
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

    /// Judges a URL whose host tells its address: a literal, or a name under `localhost`
    /// (RFC 6761 section 6.3). Other names are judged when they have been looked up.
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

    /// Notes what a name was looked up to, or where an earlier run found it.
    pub(crate) fn note_address(&self, name: &str, address: IpAddr) {
        let name = without_trailing_dot(name);
        if classify(address) == AddressClass::Public && self.typed_names.contains(name) {
            self.public_names().insert(name.to_owned());
        }
    }

    /// Notes names that are known to have had a public address.
    pub(crate) fn note_public(&self, names: &[String]) {
        self.public_names().extend(names.iter().cloned());
    }

    /// The typed names that have had a public address so far.
    pub(crate) fn public_names_seen(&self) -> Vec<String> {
        self.public_names().iter().cloned().collect()
    }

    /// Judges an address that a name was looked up to. All addresses that the name has now
    /// must have been noted.
    pub(crate) fn judge_lookup(
        &self,
        name: &str,
        address: IpAddr,
        asked: Asked,
    ) -> Result<(), AddressRefused> {
        let class = classify(address);
        let was_public = self.public_names().contains(without_trailing_dot(name));
        let is_exempt = asked == Asked::Typed && !was_public;
        let is_proxy = self.proxy.as_deref() == Some(without_trailing_dot(name));
        self.judge(class, is_exempt || is_proxy)
            .map_err(|class| AddressRefused {
                host: name.to_owned(),
                address: address.to_string(),
                class,
                was_public: was_public && class != AddressClass::Public,
            })
    }

    /// Judges the address that a connection was in fact made to.
    pub(crate) fn judge_peer(
        &self,
        url: &CanonicalUrl,
        address: IpAddr,
    ) -> Result<(), AddressRefused> {
        let asked = match self.is_typed(url) {
            true => Asked::Typed,
            false => Asked::Met,
        };
        self.judge_lookup(url.host(), address, asked)
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
        // A set of names is whole after any panic.
        let names = self.public_names.lock();
        names.unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host of a URL that the operator typed, and the ports that were meant: the one that
/// stands there, or those of http and https where none does, as a server redirects from one
/// to the other.
pub(crate) fn typed_ports(url: &CanonicalUrl) -> impl Iterator<Item = (String, u16)> {
    let ports = match url.as_url().port() {
        Some(port) => vec![port],
        None => vec![80, 443],
    };
    let host = without_trailing_dot(url.host()).to_owned();
    ports.into_iter().map(move |port| (host.clone(), port))
}

fn words(class: AddressClass) -> &'static str {
    match class {
        AddressClass::Loopback => "this machine's own address",
        AddressClass::Private => "an address of a private network",
        AddressClass::Public => "someone else's server, and no contact is given",
        _ => "an address of no single server",
    }
}

#[cfg(test)]
mod tests {
    use crawl_weburl::canonicalize;

    use super::*;

    fn check(rules: &AddressRules, url: &str, expect: Result<(), &str>) {
        let found = rules.judge_url(&canonicalize(None, url).unwrap());
        let found = found.map_err(|why| why.to_string());
        assert_eq!(found, expect.map_err(str::to_owned), "{url}");
    }

    fn typed(urls: &[&str]) -> AddressRules {
        let urls: Vec<_> = urls
            .iter()
            .map(|u| canonicalize(None, u).unwrap())
            .collect();
        AddressRules::new(false, true, &urls, Some("proxy.lan"))
    }

    #[test]
    fn ours_nobody_else_s_server_without_a_contact() {
        let typed = [canonicalize(None, "http://93.184.215.14/").unwrap()];
        let rules = AddressRules::new(false, false, &typed, None);
        let why =
            "93.184.215.14 is at 93.184.215.14, someone else's server, and no contact is given";
        check(&rules, "http://93.184.215.14/", Err(why));
        let public = "93.184.215.14".parse().unwrap();
        assert!(rules.judge_lookup("a.example", public, Asked::Met).is_err());
    }

    #[test]
    fn literal_addresses_are_judged_in_the_url() {
        let rules = AddressRules::default();
        check(&rules, "http://93.184.215.14/", Ok(()));
        check(&rules, "http://example.org/", Ok(()));
        let loopback = Err("127.0.0.1 is at 127.0.0.1, this machine's own address");
        check(&rules, "http://127.0.0.1/", loopback);
        check(&rules, "http://0x7f000001/", loopback);
        check(
            &rules,
            "http://[::ffff:10.0.0.1]:81/",
            Err("[::ffff:a00:1] is at ::ffff:10.0.0.1, an address of a private network"),
        );
        check(
            &rules,
            "http://169.254.169.254/latest",
            Err("169.254.169.254 is at 169.254.169.254, an address of a private network"),
        );
        check(
            &rules,
            "http://x.localhost./",
            Err("x.localhost. is at localhost, this machine's own address"),
        );
    }

    #[test]
    fn ours_a_typed_host_is_asked_at_the_typed_port_and_no_other() {
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
                "this machine's own address",
            ),
            (
                "http://localhost:82/",
                "localhost",
                "this machine's own address",
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
            let why = format!("{host} is at {host}, {class}");
            check(&rules, closed, Err(&why));
        }
    }

    #[test]
    fn ours_allow_private_does_not_open_addresses_of_no_server() {
        let rules = AddressRules::new(true, true, &[], None);
        check(&rules, "http://127.0.0.1/", Ok(()));
        check(&rules, "http://192.168.1.1/", Ok(()));
        check(
            &rules,
            "http://0.0.0.0/",
            Err("0.0.0.0 is at 0.0.0.0, an address of no single server"),
        );
    }

    #[test]
    fn names_are_judged_by_what_they_were_looked_up_to() {
        let rules = typed(&["http://intranet.example/"]);
        let private: IpAddr = "10.0.0.1".parse().unwrap();
        let judge = |name, asked| {
            let judged = rules.judge_lookup(name, private, asked);
            judged.map_err(|why| why.to_string())
        };
        assert_eq!(judge("intranet.example.", Asked::Typed), Ok(()));
        assert_eq!(judge("proxy.lan", Asked::Met), Ok(()));
        for (name, asked) in [
            ("rebound.example", Asked::Met),
            ("intranet.example", Asked::Met),
        ] {
            let why = format!("{name} is at 10.0.0.1, an address of a private network");
            assert_eq!(judge(name, asked), Err(why));
        }
        let public = "93.184.215.14".parse().unwrap();
        assert_eq!(
            rules.judge_lookup("rebound.example", public, Asked::Met),
            Ok(())
        );
    }

    #[test]
    fn ours_a_typed_name_that_had_a_public_address_leads_home_no_more() {
        let rules = typed(&["http://seed.example/"]);
        let url = canonicalize(None, "http://seed.example/").unwrap();
        let home: IpAddr = "169.254.169.254".parse().unwrap();
        assert_eq!(rules.judge_peer(&url, home), Ok(()));
        rules.note_address("other.example", "93.184.215.14".parse().unwrap());
        rules.note_address("seed.example", "10.0.0.1".parse().unwrap());
        assert_eq!(rules.judge_peer(&url, home), Ok(()));
        rules.note_address("seed.example.", "93.184.215.14".parse().unwrap());
        let why = "seed.example is at 169.254.169.254, an address of a private network, and had \
                   a public address before";
        let refused = rules.judge_peer(&url, home).unwrap_err();
        assert_eq!(refused.to_string(), why);
    }
}
