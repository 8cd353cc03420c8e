//! `[[prefix_pool]]` and `[ipv6]`.

use super::*;

#[test]
fn prefix_pools_and_ipv6_are_read() {
    let source = with_lns(
        "[ppp]\naddress = \"10.0.0.1\"\nauthenticate = \"nobody\"\n[[pool]]\nname = \"p\"\nranges = [\"10.1.0.0/24\"]\n\
         [[prefix_pool]]\nname = \"links\"\nranges = [\"2001:db8::/48\"]\nlength = 64\n\
         [[prefix_pool]]\nname = \"homes\"\nranges = [\"2001:db8:4000::/40\"]\nlength = 56\nsticky = false\n\
         [ipv6]\nlink_pool = \"links\"\ndelegated_pool = \"homes\"\ndns = [\"2001:db8::53\"]\nsearch = [\"example.net\"]\n\
         advertise_interval_s = 30\nvalid_s = 7200\n",
    );
    let subscribers = settings(&source).subscribers;
    let sticky: Vec<bool> = subscribers
        .prefix_pools
        .iter()
        .map(|one| one.sticky)
        .collect();
    assert_eq!(sticky, [true, false]);
    let v6 = &subscribers.edge.v6;
    assert_eq!(v6.pool.as_deref(), Some("links"));
    assert_eq!(v6.delegated_pool.as_deref(), Some("homes"));
    assert_eq!(&*v6.search, b"\x07example\x03net\x00");
    // Three intervals (RFC 4861, section 6.2.1), and half the valid lifetime.
    assert_eq!(
        (v6.router_lifetime_s, v6.valid_s, v6.preferred_s),
        (90, 7_200, 3_600)
    );
    // The DUID names the edge's own address, and is the same after every start.
    assert_eq!(*v6.duid, [0, 3, 0, 1, 2, 0x68, 10, 0, 0, 1]);
}

#[test]
fn ipv6_values_out_of_range_and_unknown_pools_are_faults() {
    let ppp = "[ppp]\naddress = \"10.0.0.1\"\nauthenticate = \"nobody\"\n[[pool]]\nname = \"p\"\nranges = [\"10.1.0.0/24\"]\n";
    let pool = "[[prefix_pool]]\nname = \"homes\"\nranges = [\"2001:db8::/40\"]\nlength = 56\n";
    for (rest, part) in [
        (
            "[ipv6]\nlink_pool = \"home\"\n",
            "there is no prefix pool \"home\"",
        ),
        (
            "[ipv6]\naddress_pool = \"homes\"\n",
            "it needs a length from 128 to 128",
        ),
        ("[ipv6]\nadvertise_interval_s = 3\n", "advertise_interval_s"),
        (
            "[ipv6]\nrouter_lifetime_s = 60\n",
            "give 0, or at least 600",
        ),
        (
            "[ipv6]\nvalid_s = 100\npreferred_s = 200\n",
            "is above valid_s",
        ),
        ("[ipv6]\ndns = [\"9.9.9.9\"]\n", "is no IPv6 address"),
        ("[ipv6]\nsearch = [\"a..b\"]\n", "a label of 0 octets"),
        (
            "[[prefix_pool]]\nname = \"x\"\nranges = [\"10.0.0.0/8\"]\nlength = 56\n",
            "no IPv6 network",
        ),
        (pool, "\"homes\" is given twice"),
    ] {
        let told = faults(&with_lns(&format!("{ppp}{pool}{rest}")));
        assert!(told.contains(part), "{rest}\n{told}");
    }
}
