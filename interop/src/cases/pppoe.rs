//! pppd with its rp-pppoe plug-in and the kernel's PPPoE as host of our access concentrator, and rp-pppoe's
//! access concentrator as peer of our client, in a guest whose kernel has PPPoE.
//!
//! ```text
//! (namespace "host") pppd -- wire ==== wire -- headend (namespace "bng")
//! (namespace "host") headend -- wire ==== wire -- pppoe-server and pppd (namespace "bng")
//! ```

use crate::kernel;
use crate::runner::Bench;
use crate::subscribers::{BEYOND, OWN, lns_settings, private_file};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

const USERS: &str = "[[user]]\nname = \"ann\"\npassword = \"sesame\"\naddress = \"10.64.0.77\"\n";

pub(super) const HOSTS: &str = r#"set -e
work=$PWD
mount --bind $work/pppd /usr/sbin/pppd
modprobe -a tun pppoe veth 8021q
ip netns add bng; ip netns add host
ip link add wire netns host type veth peer name wire netns bng
for n in host bng; do ip -n $n link set lo up; ip -n $n link set wire up; done
cp headend *.toml *.ppp /tmp; cd /tmp; chmod 600 *.toml
bng() { ip netns exec bng "$@"; }
host() { ip netns exec host "$@"; }
soon() { for i in $(seq 200); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done; echo "not so: $*" >&2; cp *.log $work; exit 1; }
"#;

/// The same host connects untagged, in a VLAN, and in a VLAN within another.
const SERVER: &str = r#"
ip -n bng addr add BEYOND/32 dev lo
ip netns exec bng ./headend run --config bng.toml > headend.log 2>&1 & headend=$!
soon ./headend show server --socket bng.sock
ip -n host link add link wire name vlan type vlan id 100
ip -n host link add link wire name outer type vlan protocol 802.1ad id 200
ip -n host link set outer up; ip -n host link add link outer name inner type vlan id 7
for link in vlan inner; do ip -n host link set $link up; done
for way in wire vlan inner; do
  mtu=1492; case $way in inner) mtu=1484;; esac
  ip netns exec host pppd file host.ppp logfile /tmp/$way.pppd.log plugin rp-pppoe.so rp_pppoe_ac bng1 $way &
  pppd=$!
  soon grep -q 'remote IP address' $way.pppd.log; soon grep -q 'remote LL address' $way.pppd.log
  host ip link show dev ppp0 > $way.link; host ip route add BEYOND dev ppp0
  host ping -n -c 3 -i 0.2 -W 2 OWN > $way.ping 2>&1 || true
  host ping -n -c 3 -i 0.2 -W 2 -s $((mtu - 28)) -M do BEYOND >> $way.ping 2>&1 || true
  host ping -n -c 3 -i 0.2 -W 2 -s 3000 -M dont BEYOND >> $way.ping 2>&1 || true
  bng iperf3 -s -1 -D -B BEYOND; sleep 0.5
  host iperf3 -J -n 300000 -R -c BEYOND > $way.iperf3 || true
  ./headend show subscriber ann --json --socket bng.sock > $way.detail
  kill $pppd; wait $pppd || true
  gone() { ! ./headend show subscriber ann --socket bng.sock; }; soon gone
  ./headend show subscribers --ended --json --socket bng.sock > $way.ended
done
# A VLAN that is not served gets no answer.
ip -n host link add link wire name other type vlan id 300; ip -n host link set other up
host pppoe-discovery -I other -t 1 -a 1 > other.discovery 2>&1 || true
./headend show pppoe --json --socket bng.sock > interfaces
./headend show counters --json --socket bng.sock > counters
./headend show event shards --json --socket bng.sock > shards
kill $headend; wait $headend
cp *.log *.link *.detail *.ended *.ping *.iperf3 *.discovery interfaces counters shards $work
"#;

/// rp-pppoe's server starts a pppd for each session.
const CLIENT: &str = r#"
mkdir ppp; printf '* * sesame *\n' > ppp/chap-secrets; chmod 600 ppp/chap-secrets; mount --bind ppp /etc/ppp
ip -n bng addr add BEYOND/32 dev lo
bng pppoe-server -F -q /usr/sbin/pppd -I wire -C there -S gold -L 10.9.9.1 -R 10.9.9.7 -O /tmp/server.ppp > server.log 2>&1 & server=$!
sleep 1
ip netns exec host ./headend run --config host.toml > headend.log 2>&1 & headend=$!
soon ./headend show server --socket host.sock
up() { host ip route show table local | grep -q 10.9.9.7; }; soon up
host ip route > client.routes
host ping -n -c 3 -i 0.2 -W 2 BEYOND > client.ping 2>&1 || true
./headend show subscribers --json --socket host.sock > client.subscribers
# The access concentrator vanishes without a PADT, and is there again.
kill -9 $server; for p in $(pidof pppd); do kill -9 $p; done; wait $server || true
bng pppoe-server -F -q /usr/sbin/pppd -I wire -C there -S gold -L 10.9.9.1 -R 10.9.9.7 -O /tmp/server.ppp > server2.log 2>&1 & server=$!
again() { ./headend show subscribers --ended --json --socket host.sock | grep -q subscriber.ended; }; soon again; soon up
host ping -n -c 3 -i 0.2 -W 2 BEYOND > client2.ping 2>&1 || true
kill $headend; wait $headend
soon grep -q 'signal 15' peer.log
kill $server; wait $server || true
cp *.log client* $work
"#;

/// The kernel's PPPoE as our host, untagged and with one and two VLAN tags.
pub(crate) fn serves_the_kernel(bench: &Bench<'_>) -> Result<()> {
    serves(bench, "")
}

/// The same on three cores, over which sessions are spread by their ids. Each packet of a host is counted by one of them.
pub(crate) fn serves_on_three_cores(bench: &Bench<'_>) -> Result<()> {
    serves(bench, "[event]\nshards = 3\n")?;
    let text = std::fs::read_to_string(bench.directory.join("shards"))?;
    let rows: Vec<Value> = text.lines().map(first).collect::<Result<_>>()?;
    ensure!(rows.len() == 3, "{text}");
    let sum = |key: &str| -> u64 { rows.iter().filter_map(|row| row[key].as_u64()).sum() };
    // Three times 9 pings, and TCP's acknowledgements.
    ensure!(sum("packets_in") > 27, "{text}");
    ensure!(sum("left_dropped") == 0, "{text}");
    Ok(())
}

fn serves(bench: &Bench<'_>, event: &str) -> Result<()> {
    bring(bench)?;
    private_file(bench, "users.toml", USERS)?;
    let settings = lns_settings(
        "authenticate = [\"chap\"]\necho_interval_s = 1",
        "",
        &format!("[users]\nfile = \"users.toml\"\n{event}"),
    );
    let head = "[control]\nsocket = \"/tmp/bng.sock\"\n[pppoe]\nac_name = \"bng1\"\n[[pppoe.interface]]\nname = \"wire\"\n\
                vlans = [\"untagged\", \"100\", \"200.1-9\"]\n";
    private_file(bench, "bng.toml", &format!("{head}{settings}"))?;
    let options = "nodetach\nnoauth\nnodefaultroute\nuser ann\npassword sesame\ndebug\n+ipv6\nmtu 1492\nmru 1492\n";
    std::fs::write(bench.directory.join("host.ppp"), options)?;
    let script = [HOSTS, SERVER]
        .concat()
        .replace("BEYOND", BEYOND)
        .replace("OWN", OWN);
    kernel::boot(bench, &script)?;
    for (way, vlans) in [
        ("wire", vec![]),
        ("vlan", vec![100]),
        ("inner", vec![200, 7]),
    ] {
        went_well(bench, way, &vlans).with_context(|| way.to_owned())?;
    }
    let read = |name: &str| std::fs::read_to_string(bench.directory.join(name));
    let discovery = read("other.discovery")?;
    ensure!(!discovery.contains("bng1"), "{discovery}");
    let interface = first(&read("interfaces")?)?;
    ensure!(
        interface["interface"] == "wire" && interface["malformed"] == 0,
        "{interface}"
    );
    ensure!(interface["other_vlan"].as_u64() >= Some(1), "{interface}");
    Ok(())
}

/// The output of pppd, ping, iperf3 and headend for one connection.
fn went_well(bench: &Bench<'_>, way: &str, vlans: &[u16]) -> Result<()> {
    let read = |name: &str| {
        let path = bench.directory.join(format!("{way}.{name}"));
        std::fs::read_to_string(path).with_context(|| name.to_owned())
    };
    let pppd = read("pppd.log")?;
    // Two tags take 8 bytes of the interface's MTU.
    let mtu = if vlans.len() < 2 { 1492 } else { 1484 };
    for said in [
        "CHAP authentication succeeded",
        "local  IP address 10.64.0.77",
        &format!("remote IP address {OWN}"),
        "remote LL address fe80::",
        &format!("<mru {mtu}>"),
        "rcvd [LCP TermAck",
    ] {
        ensure!(pppd.contains(said), "pppd did not say {said:?}: {pppd}");
    }
    let link = read("link")?;
    ensure!(link.contains(&format!("mtu {mtu}")), "{link}");
    let pings = read("ping")?;
    ensure!(pings.matches(" 0% packet loss").count() == 3, "{pings}");
    let iperf3: Value = serde_json::from_str(&read("iperf3")?).context("iperf3's result")?;
    let received = iperf3["end"]["sum_received"]["bytes"].as_u64();
    ensure!(received >= Some(100_000), "{iperf3}");
    let detail = first(&read("detail")?)?;
    let session = &detail["pppoe"];
    ensure!(
        detail["state"] == "up" && detail["mtu"] == mtu && session["max_payload"] == mtu,
        "{detail}"
    );
    ensure!(
        session["interface"] == "wire" && session["vlans"] == serde_json::json!(vlans),
        "{detail}"
    );
    let ended = first(&read("ended")?)?;
    // User-Request (RFC 2866, section 5.10).
    ensure!(
        ended["reason"] == "the peer ended it" && ended["terminate_cause"] == 1,
        "{ended}"
    );
    Ok(())
}

/// rp-pppoe's access concentrator as the peer of our client. It vanishes and comes back.
pub(crate) fn dials_rp_pppoe(bench: &Bench<'_>) -> Result<()> {
    bring(bench)?;
    let settings = "[control]\nsocket = \"/tmp/host.sock\"\n[log]\nlevel = \"debug\"\n\
                    [client]\nname = \"ann\"\nsecret = \"sesame\"\npppoe = \"wire\"\npppoe_service = \"gold\"\n\
                    pppoe_ac = \"there\"\ndefault_route = true\n[ppp]\necho_interval_s = 1\necho_tries = 2\n\
                    address = \"10.64.255.1\"\nauthenticate = \"nobody\"\n[[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n[tun]\nname = \"outside\"\n";
    private_file(bench, "host.toml", settings)?;
    let options = "require-chap\nname there\nauth\ndebug\nlogfile /tmp/peer.log\nmtu 1492\nmru 1492\nnoipv6\n";
    std::fs::write(bench.directory.join("server.ppp"), options)?;
    let script = [HOSTS, CLIENT].concat().replace("BEYOND", BEYOND);
    kernel::boot(bench, &script)?;
    let read = |name: &str| {
        let path = bench.directory.join(name);
        std::fs::read_to_string(path).with_context(|| name.to_owned())
    };
    let routes = read("client.routes")?;
    ensure!(routes.contains("default dev outside"), "{routes}");
    for name in ["client.ping", "client2.ping"] {
        let pings = read(name)?;
        ensure!(pings.contains(" 0% packet loss"), "{name}: {pings}");
    }
    let row = first(&read("client.subscribers")?)?;
    ensure!(
        row["role"] == "client" && row["access"] == "pppoe" && row["address"] == "10.9.9.7",
        "{row}"
    );
    let peer = read("peer.log")?;
    ensure!(peer.contains("remote IP address 10.9.9.7"), "{peer}");
    // At our PADT pppoe-server ends pppd or its child, whichever runs first.
    ensure!(peer.contains("signal 15"), "{peer}");
    Ok(())
}

pub(super) fn bring(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    std::fs::copy(bench.work.pppd(), bench.directory.join("pppd"))
        .context("Debian's pppd, which only root and group dip may read")?;
    Ok(())
}

pub(super) fn first(text: &str) -> Result<Value> {
    let line = text.lines().next().context("no row")?;
    serde_json::from_str(line).with_context(|| line.to_owned())
}

const PREFIXES: &str = "[[prefix_pool]]\nname = \"links\"\nranges = [\"2001:db8:1::/48\"]\nlength = 64\n\
                        [[prefix_pool]]\nname = \"homes\"\nranges = [\"2001:db8:4000::/40\"]\nlength = 56\n\
                        [ipv6]\nlink_pool = \"links\"\ndelegated_pool = \"homes\"\ndns = [\"2001:db8::53\"]\n";

/// The client of wide-dhcpv6: a prefix, of which the bridge gets the second /64.
const DHCP6C: &str = "interface ppp0 { send ia-pd 0; request domain-name-servers; script \"/tmp/dhcp6c-script\"; };\n\
                      id-assoc pd 0 { prefix-interface lan { sla-id 1; sla-len 8; }; };\n";

/// dhcpcd: two associations of prefixes, of which the first gives the second bridge a /64.
const DHCPCD: &str = "duid ll\nrelease\nnohook resolv.conf, hostname, timezone, ntp.conf\noption domain_name_servers\n\
                      interface ppp0\nipv6ra_noautoconf\nia_pd 7 yard/2/64\nia_pd 8\n";

/// The kernel configures its address by Router Advertisements, and the clients of wide-dhcpv6 and then of dhcpcd ask for a
/// prefix.
const FAMILIES: &str = r#"
ip -n bng -6 addr add BEYOND_V6/128 dev lo
ip netns exec bng ./headend run --config bng.toml > headend.log 2>&1 & headend=$!
soon ./headend show server --socket bng.sock
cp $work/dhcp6c.conf .; mkdir duid; mount --bind duid /var/lib/dhcpv6
printf '#!/bin/sh\nenv > /tmp/dhcp6c.env\n' > dhcp6c-script; chmod +x dhcp6c-script
for bridge in lan yard; do ip -n host link add $bridge type bridge; ip -n host link set $bridge up; done
cp $work/dhcpcd.conf .; mkdir -p leases /var/lib/dhcpcd /run/dhcpcd; mount --bind leases /var/lib/dhcpcd
host sysctl -qw net.ipv6.conf.lan.accept_dad=0 net.ipv6.conf.yard.accept_dad=0
ip netns exec host pppd file host.ppp logfile /tmp/pppd.log plugin rp-pppoe.so wire &
pppd=$!
linked() { host ip -6 addr show dev ppp0 scope global | grep -q 2001:db8:1:; }; soon linked
host ip -6 route > v6.routes; host ip -6 addr show dev ppp0 > v6.link
host ping -6 -n -c 3 -i 0.2 -W 2 BEYOND_V6 > v6.ping 2>&1 || true
gateway=$(host ip -6 route show default | grep -o 'fe80::[0-9a-f:]*' | head -1)
host ping -6 -n -c 3 -i 0.2 -W 2 $gateway%ppp0 >> v6.ping 2>&1 || true
ip netns exec host dhcp6c -f -D -c dhcp6c.conf -p dhcp6c.pid ppp0 > dhcp6c.log 2>&1 & client=$!
delegated() { host ip -6 addr show dev lan scope global | grep -q 2001:db8:40; }; soon delegated
soon test -s dhcp6c.env; sleep 1
host ip -6 addr show dev lan > v6.lan
own=$(grep -o '2001:db8:40[0-9a-f:]*' v6.lan | head -1)
host ping -6 -n -c 3 -i 0.2 -W 2 -I $own BEYOND_V6 >> v6.ping 2>&1 || true
./headend show subscriber ann --json --socket bng.sock > v6.detail
kill $client; wait $client || true; sleep 1
ip netns exec host dhcpcd -6 -B -d -f /tmp/dhcpcd.conf ppp0 > dhcpcd.log 2>&1 & client=$!
second() { host ip -6 addr show dev yard scope global -tentative | grep -q 2001:db8:40; }; soon second || true
host ip -6 addr show dev yard > v6.yard
own=$(grep -o '2001:db8:40[0-9a-f:]*' v6.yard | head -1)
host ping -6 -n -c 3 -i 0.2 -W 2 -I ${own:-::1} BEYOND_V6 >> v6.ping 2>&1 || true
./headend show subscriber ann --json --socket bng.sock > v6.dhcpcd
kill $client; wait $client || true; sleep 1
./headend show counters --json --socket bng.sock > v6.counters
kill $pppd; wait $pppd || true
gone() { ! ./headend show subscriber ann --socket bng.sock; }; soon gone
./headend show pools --json --socket bng.sock > v6.pools
kill $headend; wait $headend
cp *.log v6.* dhcp6c.env $work
"#;

/// The kernel's Router Advertisements, and prefix delegation to wide-dhcpv6 and dhcpcd, over PPPoE.
pub(crate) fn hosts_get_ipv6(bench: &Bench<'_>) -> Result<()> {
    bring(bench)?;
    private_file(bench, "users.toml", USERS)?;
    let ppp = "authenticate = [\"chap\"]\naddress_v6 = \"2001:db8::1\"";
    let sections = format!("[users]\nfile = \"users.toml\"\n{PREFIXES}");
    let settings = lns_settings(ppp, "", &sections);
    let head =
        "[control]\nsocket = \"/tmp/bng.sock\"\n[pppoe]\n[[pppoe.interface]]\nname = \"wire\"\n";
    private_file(bench, "bng.toml", &format!("{head}{settings}"))?;
    let options = "nodetach\nnoauth\nnodefaultroute\nuser ann\npassword sesame\ndebug\n+ipv6\nmtu 1492\nmru 1492\n";
    std::fs::write(bench.directory.join("host.ppp"), options)?;
    std::fs::write(bench.directory.join("dhcp6c.conf"), DHCP6C)?;
    std::fs::write(bench.directory.join("dhcpcd.conf"), DHCPCD)?;
    let script = [HOSTS, FAMILIES]
        .concat()
        .replace("BEYOND_V6", "2001:db8:ffff::1");
    kernel::boot(bench, &script)?;
    let read = |name: &str| {
        let path = bench.directory.join(name);
        std::fs::read_to_string(path).with_context(|| name.to_owned())
    };
    let routes = read("v6.routes")?;
    ensure!(
        routes.contains("default via fe80::") && routes.contains("proto ra"),
        "{routes}"
    );
    let pings = read("v6.ping")?;
    ensure!(pings.matches(" 0% packet loss").count() == 4, "{pings}");
    let yard = read("v6.yard")?;
    ensure!(yard.contains("/64 scope global"), "{yard}");
    let by_dhcpcd = first(&read("v6.dhcpcd")?)?;
    ensure!(by_dhcpcd["ipv6"]["dhcpv6"] == "leased", "{by_dhcpcd}");
    let environment = read("dhcp6c.env")?;
    ensure!(environment.contains("2001:db8::53"), "{environment}");
    let (link, lan) = (read("v6.link")?, read("v6.lan")?);
    ensure!(lan.contains("/64 scope global"), "{lan}");
    let detail = first(&read("v6.detail")?)?;
    let leased = |key: &str| detail["ipv6"][key].as_str().unwrap_or_default().to_owned();
    let prefix = leased("prefix");
    let stem = prefix.trim_end_matches("::/64");
    ensure!(!stem.is_empty() && link.contains(stem), "{detail}\n{link}");
    ensure!(leased("delegated").ends_with("/56"), "{detail}");
    let counters = read("v6.counters")?;
    for (name, least) in [
        ("ipv6_router_advertisements", 1),
        ("ipv6_leases", 2),
        ("ipv6_releases", 2),
        ("ipv6_echoes", 3),
    ] {
        let value = counters.lines().find_map(|line| {
            let row: Value = serde_json::from_str(line).ok()?;
            (row["name"] == name).then(|| row["value"].as_u64())?
        });
        ensure!(value >= Some(least), "{name}: {value:?}");
    }
    let pools = read("v6.pools")?;
    for line in pools.lines().filter(|line| line.contains("pool.prefix")) {
        let row: Value = serde_json::from_str(line)?;
        ensure!(row["used"] == 0, "{row}");
    }
    Ok(())
}

/// rp-pppoe's server, radvd and wide-dhcpv6's server on its ppp interface: a /64 for the link and a /56 for the host.
const UPLINK: &str = r#"
mkdir ppp; printf '* * sesame *\n' > ppp/chap-secrets; chmod 600 ppp/chap-secrets; mount --bind ppp /etc/ppp
cp $work/radvd.conf $work/dhcp6s.conf .
printf '#!/bin/sh\necho "$@" > /tmp/ipv6-up\n' > ppp/ipv6-up; chmod +x ppp/ipv6-up
mkdir duid; mount --bind duid /var/lib/dhcpv6
ip -n bng -6 addr add BEYOND_V6/128 dev lo
bng sysctl -qw net.ipv6.conf.all.forwarding=1
ip -n host link add lan0 type bridge; ip -n host link set lan0 up
host sysctl -qw net.ipv6.conf.all.forwarding=1
bng pppoe-server -F -q /usr/sbin/pppd -I wire -C there -L 10.9.9.1 -R 10.9.9.7 -O /tmp/server.ppp > server.log 2>&1 & server=$!
sleep 1
ip netns exec host ./headend run --config host.toml > headend.log 2>&1 & headend=$!
soon ./headend show server --socket host.sock
open() { bng ip -6 addr show dev ppp0 | grep -q fe80; }; soon open; sleep 1
ip -n bng -6 route add 2001:db8:1:2::/64 dev ppp0; ip -n bng -6 route add 2001:db8:4000:100::/56 dev ppp0
bng dhcp6s -f -D -c dhcp6s.conf -P dhcp6s.pid ppp0 > dhcp6s.log 2>&1 & dhcp=$!
bng radvd -n -C radvd.conf -p radvd.pid > radvd.log 2>&1 & radvd=$!
delegated() { host ip -6 addr show dev lan0 scope global | grep -q 2001:db8:4000:100::1/64; }; soon delegated
routed() { host ip -6 route | grep -q 'default dev outside'; }; soon routed
host ip -6 route > up.routes; host ip -6 addr show dev outside > up.own; host ip -6 addr show dev lan0 > up.lan
host ping -6 -n -c 3 -i 0.2 -W 2 BEYOND_V6 > up.ping 2>&1 || true
host ping -6 -n -c 3 -i 0.2 -W 2 -I 2001:db8:4000:100::1 BEYOND_V6 >> up.ping 2>&1 || true
./headend show subscribers --json --socket host.sock > up.subscribers
kill $headend; wait $headend; sleep 1
host ip -6 addr show dev lan0 > down.lan; host ip -6 route > down.routes
kill $dhcp $radvd $server; wait || true
cp *.log up.* down.* $work
"#;

const RADVD: &str = "interface ppp0 { AdvSendAdvert on; UnicastOnly off; MinRtrAdvInterval 3; MaxRtrAdvInterval 4;\n\
                     prefix 2001:db8:1:2::/64 { AdvOnLink off; AdvAutonomous on; }; RDNSS 2001:db8::53 { }; };\n";

/// The DUID is that of the user "ann", see the daemon's `config::subscribers`.
const DHCP6S: &str = "option domain-name-servers 2001:db8::54;\n\
                      host ann { duid DUID; prefix 2001:db8:4000:100::/56 600 900; };\n";

/// The client side of IPv6: an address by radvd's Router Advertisements, and a prefix by wide-dhcpv6's server.
pub(crate) fn client_gets_ipv6(bench: &Bench<'_>) -> Result<()> {
    bring(bench)?;
    let settings = "[control]\nsocket = \"/tmp/host.sock\"\n[log]\nlevel = \"debug\"\n\
                    [client]\nname = \"ann\"\nsecret = \"sesame\"\npppoe = \"wire\"\ndefault_route = true\n\
                    prefix = true\nprefix_interface = \"lan0\"\n[tun]\nname = \"outside\"\n";
    private_file(bench, "host.toml", settings)?;
    let options =
        "require-chap\nname there\nauth\ndebug\nlogfile /tmp/peer.log\nmtu 1492\nmru 1492\n+ipv6\n";
    std::fs::write(bench.directory.join("server.ppp"), options)?;
    std::fs::write(bench.directory.join("radvd.conf"), RADVD)?;
    let dhcp6s = DHCP6S.replace("DUID", &duid("ann"));
    std::fs::write(bench.directory.join("dhcp6s.conf"), dhcp6s)?;
    let script = [HOSTS, UPLINK]
        .concat()
        .replace("BEYOND_V6", "2001:db8:ffff::1");
    kernel::boot(bench, &script)?;
    let read = |name: &str| {
        let path = bench.directory.join(name);
        std::fs::read_to_string(path).with_context(|| name.to_owned())
    };
    let routes = read("up.routes")?;
    ensure!(routes.contains("default dev outside"), "{routes}");
    ensure!(routes.contains("2001:db8:4000:100::/56 dev lo"), "{routes}");
    let own = read("up.own")?;
    ensure!(own.contains("2001:db8:1:2:"), "{own}");
    let pings = read("up.ping")?;
    ensure!(pings.matches(" 0% packet loss").count() == 2, "{pings}");
    let row = first(&read("up.subscribers")?)?;
    ensure!(row["role"] == "client", "{row}");
    // The daemon removes what it set.
    let (lan, routes) = (read("down.lan")?, read("down.routes")?);
    ensure!(!lan.contains("2001:db8:4000"), "{lan}");
    ensure!(!routes.contains("2001:db8:4000:100::/56"), "{routes}");
    // The prefix was given back before the session ended.
    let dhcp6s = read("dhcp6s.log")?;
    ensure!(dhcp6s.contains("release from"), "{dhcp6s}");
    Ok(())
}

/// The DUID of our client with this name: a link-layer address made of the name's hash (FNV-1a).
fn duid(name: &str) -> String {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let [a, b, c, d] = hash.to_be_bytes();
    format!("00:03:00:01:02:68:{a:02x}:{b:02x}:{c:02x}:{d:02x}")
}
