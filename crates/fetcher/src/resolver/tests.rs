use std::time::Duration;

use super::*;
use crate::failure_kind::FailureKind;

fn check(addresses: &[&str], expect: Result<&[&str], &str>) {
    let names = CheckedResolver::new(
        Arc::default(),
        NameServerResolver::new(&[], None, Duration::ZERO),
    );
    let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
    let permitted = names.permitted("a.example", &addresses);
    let permitted = permitted.map_err(|reason| reason.to_string());
    let expect = expect.map(|sockets| sockets.iter().map(|s| s.parse().unwrap()).collect());
    assert_eq!(permitted, expect.map_err(str::to_owned));
}

#[test]
fn a_name_with_a_private_address_is_refused() {
    check(
        &["10.0.0.1", "127.0.0.1"],
        Err("a.example is at 10.0.0.1, an address of a private network"),
    );
}

#[test]
fn only_the_public_ones_of_several_addresses_are_used() {
    check(
        &["127.0.0.1", "93.184.215.14", "2606:2800:220:1::1"],
        Ok(&["93.184.215.14:0", "[2606:2800:220:1::1]:0"]),
    );
}

#[test]
fn an_answer_is_kept_for_its_ttl_within_bounds() {
    let lifetime = |good: bool, ttl: Option<u64>| {
        let addresses = match good {
            true => Ok(vec![[93, 184, 215, 14].into(); 40]),
            false => Err(NameLookupError {
                kind: FailureKind::NoSuchName,
                detail: String::new(),
            }),
        };
        let ttl = ttl.map(Duration::from_secs);
        let (name, entry) = (String::new(), Entry::default());
        let held = PerEntryExpiry.expire_after_create(&name, &entry, Instant::now());
        assert_eq!(held, None, "being looked up");
        entry
            .set(CachedAddresses::of(ResolvedAddresses { addresses, ttl }))
            .unwrap();
        let known = entry.get().unwrap();
        assert!(known.addresses.as_ref().is_ok_and(|all| all.len() == 1) == good);
        let held = PerEntryExpiry.expire_after_update(&name, &entry, Instant::now(), held);
        assert_eq!(held, Some(known.holds));
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
        assert_eq!(lifetime(good, ttl), holds, "{good} {ttl:?}");
    }
}

/// DNS rebinding: each connection is checked against the name's current address, whether cached or
/// just looked up.
#[tokio::test]
async fn a_name_that_becomes_private_is_refused() {
    let names = CheckedResolver::new(
        Arc::default(),
        NameServerResolver::new(&[], None, Duration::ZERO),
    );
    let leads_to = async |address: &str| {
        let addresses = Ok(vec![address.parse().unwrap()]);
        let ttl = Some(Duration::from_secs(300));
        let entry = CachedAddresses::of(ResolvedAddresses { addresses, ttl });
        let key = "a.example".to_owned();
        names.known.insert(key, Arc::new(entry.into()));
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

/// DNS rebinding of a name that the operator typed: its address may be private as long as the name
/// never had a public address.
#[tokio::test]
async fn a_typed_name_is_private_from_the_beginning_or_never() {
    let home = ["127.0.0.1".parse().unwrap()];
    let public = ["93.184.215.14".parse().unwrap()];
    for then in [&public[..], &[home[0], public[0]]] {
        let typed = [crawl_weburl::canonicalize(None, "http://seed.example/").unwrap()];
        let rules = Arc::new(AddressChecker::new(false, false, &typed, None));
        let other_names =
            CheckedResolver::new(rules, NameServerResolver::new(&[], None, Duration::ZERO));
        let names = other_names.for_typed();
        assert!(names.permitted("seed.example", &home).is_ok());
        assert!(
            other_names.permitted("seed.example", &home).is_err(),
            "another port"
        );
        // A public address that one resolver finds counts for all resolvers.
        let _ = other_names.permitted("seed.example.", then);
        let reason = names.permitted("seed.example", &home).unwrap_err();
        let expect = "seed.example is at 127.0.0.1, an address of this machine, and had a public \
                      address before";
        assert_eq!(reason.to_string(), expect);
    }
}

/// The addresses of the slower family arrive after the name was first used.
#[tokio::test]
async fn rfc8305_3_late_addresses_are_kept_and_judged() {
    let private: IpAddr = "127.0.0.1".parse().unwrap();
    let public: IpAddr = "2606:2800:220:1::1".parse().unwrap();
    let answer = |addresses: &[IpAddr]| ResolvedAddresses {
        addresses: Ok(addresses.to_vec()),
        ttl: Some(Duration::from_secs(300)),
    };
    let typed = [crawl_weburl::canonicalize(None, "http://seed.example/").unwrap()];
    let rules = Arc::new(AddressChecker::new(false, true, &typed, None));
    let names =
        CheckedResolver::new(rules, NameServerResolver::new(&[], None, Duration::ZERO)).for_typed();
    let partial: Entry = Arc::new(CachedAddresses::of(answer(&[private])).into());
    let key = "seed.example".to_owned();
    names.known.insert(key.clone(), Arc::clone(&partial));
    assert!(names.look_up("seed.example").await.is_ok());

    let rest = || -> LookupFuture { Box::pin(std::future::ready(answer(&[private, public]))) };
    let late = |partial| names.clone().add_late(key.clone(), partial, rest());
    late(Arc::new(CachedAddresses::of(answer(&[private])).into())).await;
    let current = names.known.get(&key).unwrap();
    assert!(
        Arc::ptr_eq(&current, &partial),
        "looked up again in between"
    );
    let reason = names.look_up("seed.example").await.unwrap_err();
    assert!(
        reason.to_string().ends_with("had a public address before"),
        "{reason}"
    );

    // While the maximum number of look-ups wait for their slower family, a further look-up keeps
    // its cached answer and is counted.
    let room = names.late.try_acquire_many(MAX_LATE_LOOKUPS as u32);
    late(Arc::clone(&partial)).await;
    assert_eq!(names.one_family_lookups(), 1);
    let current = names.known.get(&key).unwrap();
    assert!(Arc::ptr_eq(&current, &partial));
    drop(room);

    late(partial).await;
    assert_eq!(names.one_family_lookups(), 1);
    let addresses = names.look_up("seed.example").await.unwrap();
    assert_eq!(addresses, [SocketAddr::new(public, 0)]);
}
