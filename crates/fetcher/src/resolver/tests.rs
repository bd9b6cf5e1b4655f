use std::time::Duration;

use super::*;
use crate::failure_kind::FailureKind;

fn check(addresses: &[&str], expect: Result<&[&str], &str>) {
    let names = Names::new(Arc::default(), Source::new(&[], None, Duration::ZERO));
    let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
    let found = names.permitted("a.example", &addresses);
    let found = found.map_err(|why| why.to_string());
    let expect = expect.map(|sockets| sockets.iter().map(|s| s.parse().unwrap()).collect());
    assert_eq!(found, expect.map_err(str::to_owned));
}

#[test]
fn a_name_that_leads_home_is_refused() {
    check(
        &["10.0.0.1", "127.0.0.1"],
        Err("a.example is at 10.0.0.1, an address of a private network"),
    );
}

#[test]
fn ours_of_several_addresses_the_public_ones_are_asked() {
    check(
        &["127.0.0.1", "93.184.215.14", "2606:2800:220:1::1"],
        Ok(&["93.184.215.14:0", "[2606:2800:220:1::1]:0"]),
    );
}

#[test]
fn an_answer_holds_for_its_ttl_within_bounds() {
    let found = |good: bool, ttl: Option<u64>| {
        let addresses = match good {
            true => Ok(vec![[93, 184, 215, 14].into(); 40]),
            false => Err(NoAddresses {
                kind: FailureKind::NoSuchName,
                detail: String::new(),
            }),
        };
        let ttl = ttl.map(Duration::from_secs);
        let known = Arc::new(Known::of(NameAnswer { addresses, ttl }));
        let held = AsSaid.expire_after_create(&String::new(), &known, Instant::now());
        assert_eq!(held, Some(known.holds));
        assert!(known.addresses.as_ref().is_ok_and(|all| all.len() == 1) == good);
        known.holds.as_secs()
    };
    for (good, ttl, holds) in [
        (true, Some(300), 300),
        (true, Some(0), 10),
        (true, Some(7 * 86_400), 86_400),
        (false, Some(900), 900),
        (false, Some(0), 10),
        (false, Some(86_400), 3_600),
        (false, None, 10),
    ] {
        assert_eq!(found(good, ttl), holds, "{good} {ttl:?}");
    }
}

/// DNS rebinding: the next connection is judged by what the name leads to then, be it kept
/// or asked for.
#[tokio::test]
async fn a_name_that_led_elsewhere_before_is_refused_once_it_leads_home() {
    let names = Names::new(Arc::default(), Source::new(&[], None, Duration::ZERO));
    let leads_to = async |address: &str| {
        let addresses = Ok(vec![address.parse().unwrap()]);
        let ttl = Some(Duration::from_secs(300));
        let known = Known::of(NameAnswer { addresses, ttl });
        names
            .known
            .insert("a.example".to_owned(), Arc::new(known))
            .await;
        names
            .look_up("a.example.")
            .await
            .map_err(|why| why.to_string())
    };
    let public = leads_to("93.184.215.14").await;
    assert_eq!(public, Ok(vec!["93.184.215.14:0".parse().unwrap()]));
    for home in ["127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "fd00::1"] {
        let refused = leads_to(home).await.unwrap_err();
        assert!(refused.starts_with("a.example. is at "), "{refused}");
    }
}

/// DNS rebinding of a name that the operator typed: it may be private as long as it never was
/// anything else.
#[tokio::test]
async fn ours_a_typed_name_is_private_from_the_beginning_or_not_at_all() {
    let home = ["127.0.0.1".parse().unwrap()];
    let public = ["93.184.215.14".parse().unwrap()];
    for then in [&public[..], &[home[0], public[0]]] {
        let typed = [crawl_weburl::canonicalize(None, "http://seed.example/").unwrap()];
        let rules = Arc::new(AddressRules::new(false, false, &typed, None));
        let met = Names::new(rules, Source::new(&[], None, Duration::ZERO));
        let names = met.for_typed();
        assert!(names.permitted("seed.example", &home).is_ok());
        assert!(
            met.permitted("seed.example", &home).is_err(),
            "another port"
        );
        // Whoever looks it up.
        let _ = met.permitted("seed.example.", then);
        let why = names.permitted("seed.example", &home).unwrap_err();
        let expect = "seed.example is at 127.0.0.1, this machine's own address, and had a public \
                      address before";
        assert_eq!(why.to_string(), expect);
    }
}

/// The slower address family arrives when the name was already used.
#[tokio::test]
async fn rfc8305_3_late_addresses_are_kept_and_judged() {
    let private: IpAddr = "127.0.0.1".parse().unwrap();
    let public: IpAddr = "2606:2800:220:1::1".parse().unwrap();
    let kept = |addresses: &[IpAddr]| NameAnswer {
        addresses: Ok(addresses.to_vec()),
        ttl: Some(Duration::from_secs(300)),
    };
    let typed = [crawl_weburl::canonicalize(None, "http://seed.example/").unwrap()];
    let rules = Arc::new(AddressRules::new(false, true, &typed, None));
    let names = Names::new(rules, Source::new(&[], None, Duration::ZERO)).for_typed();
    let partial = Arc::new(Known::of(kept(&[private])));
    let key = "seed.example".to_owned();
    names.known.insert(key.clone(), Arc::clone(&partial)).await;
    assert!(names.look_up("seed.example").await.is_ok());

    let rest = || -> Rest { Box::pin(std::future::ready(kept(&[private, public]))) };
    let late = |partial| names.clone().add_late(key.clone(), partial, rest());
    late(Arc::new(Known::of(kept(&[private])))).await;
    let current = names.known.get(&key).await.unwrap();
    assert!(
        Arc::ptr_eq(&current, &partial),
        "looked up again in between"
    );
    let why = names.look_up("seed.example").await.unwrap_err();
    assert!(
        why.to_string().ends_with("had a public address before"),
        "{why}"
    );

    late(partial).await;
    let found = names.look_up("seed.example").await.unwrap();
    assert_eq!(found, [SocketAddr::new(public, 0)]);
}
