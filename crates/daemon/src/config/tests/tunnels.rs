//! `[[tunnel]]`.

use super::*;

#[test]
fn a_wrong_tunnel_is_refused_with_line_key_and_remedy() {
    let head = "[control]\nsocket = \"/run/x\"\n[lns]\nlisten = [\"192.0.2.1:1701\"]\n[lac]\n[[tunnel]]\nname = \"isp\"\n";
    let cases = [
        (
            "lns = [\"isp.example\"]\n",
            "8:8: tunnel[1].lns: \"isp.example\" is no address of an LNS; write \"192.0.2.1\" or \"192.0.2.1:1701\"",
        ),
        (
            "lns = [\"192.0.2.1\"]\n",
            "8:8: tunnel[1].lns: 192.0.2.1:1701 is an address of [lns]; give the LNS of another machine: a session would come back",
        ),
        (
            "lns = [\"192.0.2.9\"]\nbackup = [\"2001:db8::1\"]\nfrom = \"192.0.2.7\"\n",
            "9:11: tunnel[1].backup: [2001:db8::1]:1701 and from are not of one address family; give both as IPv4 or both as IPv6",
        ),
        (
            "lns = [\"192.0.2.9\"]\nrealms = [\"a@b\"]\n",
            "9:11: tunnel[1].realms: \"a@b\" is no realm; write what follows the @ of a name, such as \"isp.example\"",
        ),
        (
            "lns = [\"192.0.2.9\"]\n[[tunnel.line]]\ninterface = \"eth7\"\n",
            "10:13: tunnel[1].line[1].interface: there is no interface \"eth7\"; give [[pppoe.interface]] with that name",
        ),
        (
            "lns = [\"192.0.2.9\"]\n[[tunnel.line]]\n",
            "9:1: tunnel[1].line[1].interface: says for whom it is by none of its keys; give interface and vlans, or some of local, peer, host_name",
        ),
        (
            "lns = [\"192.0.2.9\"]\nrealms = [\"isp.example\"]\n[[tunnel]]\nname = \"other\"\nlns = [\"192.0.2.8\"]\nrealms = [\"ISP.example\"]\n",
            "13:11: tunnel[2].realms: \"isp.example\" is a realm of line 9 already; give it once",
        ),
        (
            "lns = [\"192.0.2.9\"]\nrealms = [\"isp.example\"]\n",
            "6:1: tunnel: with realms is of no use without [ppp], which asks for names; give [ppp] with address = \"10.255.0.1\"",
        ),
    ];
    for (tunnel, expected) in cases {
        let told = faults(&format!("{head}{tunnel}"));
        assert_eq!(told, format!("headend.toml:{expected}"), "{tunnel}");
    }
    let source = "[control]\nsocket = \"/run/x\"\n[lns]\nlisten = [\"192.0.2.1:1701\"]\n[[tunnel]]\nname = \"isp\"\nlns = [\"192.0.2.9\"]\n";
    assert!(faults(source).contains("are of no use without [lac]"));
}
