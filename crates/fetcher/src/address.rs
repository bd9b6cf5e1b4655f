//! Which addresses are asked: anyone's public server, and what the operator allowed.

use std::collections::HashSet;
use std::net::IpAddr;

use crawl_weburl::{AddressClass, CanonicalUrl, HostKey, classify};

/// The operator's word on addresses.
#[derive(Debug, Default)]
pub(crate) struct AddressRules {
    allow_private: bool,
    refuse_public: bool,
    own_hosts: HashSet<HostKey>,
    /// The names among them, and the proxy's: a lookup knows no port.
    own_names: HashSet<String>,
}

/// Why an address is not connected to. Travels through the client's errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} is at {address}, {}", words(*class))]
pub(crate) struct AddressRefused {
    pub(crate) host: String,
    pub(crate) address: String,
    pub(crate) class: AddressClass,
}

impl AddressRules {
    pub(crate) fn new(
        allow_private: bool,
        allow_public: bool,
        own_hosts: &[HostKey],
        proxy_host: Option<&str>,
    ) -> AddressRules {
        let names = own_hosts.iter().map(HostKey::host).chain(proxy_host);
        AddressRules {
            allow_private,
            refuse_public: !allow_public,
            own_names: names.map(|name| plain(name).to_ascii_lowercase()).collect(),
            own_hosts: own_hosts.iter().cloned().collect(),
        }
    }

    /// Judges a URL whose host tells its address: a literal, or a name under `localhost`
    /// (RFC 6761 section 6.3). Other names are judged when they have been looked up.
    pub(crate) fn judge_url(&self, url: &CanonicalUrl) -> Result<(), AddressRefused> {
        let class = match literal(url) {
            Some(address) => classify(address),
            None if is_localhost(url.host()) => AddressClass::Loopback,
            None => return Ok(()),
        };
        self.judge(class, self.own_hosts.contains(&url.host_key()))
            .map_err(|class| AddressRefused {
                host: url.host().to_owned(),
                address: literal(url).map_or("localhost".to_owned(), |a| a.to_string()),
                class,
            })
    }

    /// Judges an address that a name was looked up to.
    pub(crate) fn judge_lookup(&self, name: &str, address: IpAddr) -> Result<(), AddressRefused> {
        let own = self.own_names.contains(plain(name));
        self.judge(classify(address), own)
            .map_err(|class| refused(name, address, class))
    }

    /// Judges the address that a connection was in fact made to.
    pub(crate) fn judge_peer(
        &self,
        url: &CanonicalUrl,
        address: IpAddr,
    ) -> Result<(), AddressRefused> {
        self.judge(
            classify(address),
            self.own_hosts.contains(&url.host_key()) || self.own_names.contains(plain(url.host())),
        )
        .map_err(|class| refused(url.host(), address, class))
    }

    fn judge(&self, class: AddressClass, own: bool) -> Result<(), AddressClass> {
        match class {
            AddressClass::Public if self.refuse_public => Err(class),
            AddressClass::Public => Ok(()),
            _ if own => Ok(()),
            AddressClass::Loopback | AddressClass::Private if self.allow_private => Ok(()),
            other => Err(other),
        }
    }
}

/// The address that stands in the URL itself.
pub(crate) fn literal(url: &CanonicalUrl) -> Option<IpAddr> {
    url.host().trim_matches(['[', ']']).parse().ok()
}

/// A name as it is compared: without the trailing dot.
pub(crate) fn plain(name: &str) -> &str {
    name.trim_end_matches('.')
}

fn refused(name: &str, address: IpAddr, class: AddressClass) -> AddressRefused {
    AddressRefused {
        host: name.to_owned(),
        address: address.to_string(),
        class,
    }
}

pub(crate) fn is_localhost(name: &str) -> bool {
    plain(name) == "localhost" || plain(name).ends_with(".localhost")
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

    fn own(hosts: &[&str]) -> AddressRules {
        let hosts: Vec<_> = hosts.iter().map(|h| HostKey::parse(h).unwrap()).collect();
        AddressRules::new(false, true, &hosts, Some("proxy.lan"))
    }

    #[test]
    fn ours_nobody_else_s_server_without_a_contact() {
        let own = [canonicalize(None, "http://93.184.215.14/")
            .unwrap()
            .host_key()];
        let rules = AddressRules::new(false, false, &own, None);
        let why =
            "93.184.215.14 is at 93.184.215.14, someone else's server, and no contact is given";
        check(&rules, "http://93.184.215.14/", Err(why));
        assert!(
            rules
                .judge_lookup("a.example", "93.184.215.14".parse().unwrap())
                .is_err()
        );
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
    fn ours_a_typed_host_is_asked_and_no_other_port_of_this_machine() {
        let rules = own(&["127.0.0.1:8080", "localhost:81", "10.1.2.3"]);
        check(&rules, "http://127.0.0.1:8080/", Ok(()));
        check(&rules, "http://localhost:81/", Ok(()));
        check(&rules, "http://10.1.2.3:9999/", Ok(()));
        check(
            &rules,
            "http://127.0.0.1:8081/",
            Err("127.0.0.1 is at 127.0.0.1, this machine's own address"),
        );
        check(
            &rules,
            "http://localhost:82/",
            Err("localhost is at localhost, this machine's own address"),
        );
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
        let rules = own(&["intranet.example"]);
        let private: IpAddr = "10.0.0.1".parse().unwrap();
        assert_eq!(rules.judge_lookup("intranet.example.", private), Ok(()));
        assert_eq!(rules.judge_lookup("proxy.lan", private), Ok(()));
        let why = rules.judge_lookup("rebound.example", private).unwrap_err();
        assert_eq!(
            why.to_string(),
            "rebound.example is at 10.0.0.1, an address of a private network"
        );
        let public = "93.184.215.14".parse().unwrap();
        assert_eq!(rules.judge_lookup("rebound.example", public), Ok(()));
    }
}
