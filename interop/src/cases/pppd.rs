//! Debian's xl2tpd and pppd as LAC and client of our LNS, in a guest whose kernel supports PPP.
//!
//! ```text
//! (namespace "lac") pppd -- xl2tpd ==== wire ==== headend -- inside (namespace "lns")
//! ```

use crate::kernel;
use crate::runner::Bench;
use crate::subscribers::{BEYOND, OWN, lns_settings, private_file};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A network behind the subscriber, and one beyond the LNS.
const NETWORK_V6: &str = "fd42::/64";
const HOME_V6: &str = "fd42::1";
const BEYOND_V6: &str = "fd99::1";

const USERS: &str = "[[user]]\nname = \"ann\"\npassword = \"sesame\"\naddress = \"10.64.0.77\"\nroutes = [\"fd42::/64\"]\n";

/// Two hosts, with headend on one. xl2tpd is restarted for each method, and each has its own pppd log.
const GUEST: &str = r#"set -e
work=$PWD
mount --bind $work/pppd /usr/sbin/pppd
modprobe -a tun ppp_async l2tp_ppp veth
ip netns add lns; ip netns add lac
ip link add wire netns lac type veth peer name wire netns lns
for n in lac lns; do ip -n $n link set lo up; ip -n $n link set wire up; done
ip -n lac addr add 10.9.0.1/24 dev wire; ip -n lns addr add 10.9.0.2/24 dev wire
ip -n lns addr add BEYOND/32 dev lo; ip -n lns -6 addr add BEYOND_V6/128 dev lo; ip -n lac -6 addr add HOME_V6/128 dev lo
cp headend *.toml *.ppp /tmp; cd /tmp; chmod 600 lns.toml users.toml
lns() { ip netns exec lns "$@"; }
lac() { ip netns exec lac "$@"; }
soon() { for i in $(seq 200); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done; echo "not so: $*" >&2; cp *.log *.conf $work; exit 1; }
ip netns exec lns ./headend run --config lns.toml > headend-lns.log 2>&1 & headend=$!
soon ./headend show server --socket lns.sock
connect() { # name, how xl2tpd carries data
  mkdir -p /run/xl2tpd
  printf '[global]\nlisten-addr = 10.9.0.1\nforce userspace = %s\n[lac x]\nlns = 10.9.0.2\nautodial = yes\nrequire authentication = no\npppoptfile = /tmp/%s.ppp\n' $2 $1 > $1.conf
  ip netns exec lac xl2tpd -D -c $1.conf -p $1.pid -C $1.control > $1.xl2tpd.log 2>&1 & xl2tpd=$!
  soon grep -q 'remote IP address' $1.pppd.log; soon grep -q 'remote LL address' $1.pppd.log
  lac ip addr show dev ppp0 > $1.addresses
  lac ip route add BEYOND dev ppp0; lac ip -6 route add BEYOND_V6 dev ppp0
}
leave() {
  sleep 3
  ./headend show subscriber ann --json --socket lns.sock > $1.detail
  kill $(cat /run/ppp0.pid); soon grep -q 'Connection terminated' $1.pppd.log
  kill $xl2tpd; wait $xl2tpd || true
  gone() { ! ./headend show subscriber ann --socket lns.sock; }; soon gone
  ./headend show subscribers --ended --json --socket lns.sock > $1.ended
}
p() { lac ping -n -c 3 -i 0.2 -W 2 "$@"; }
for way in chap pap; do
  case $way in chap) userspace=no;; pap) userspace=yes;; esac
  connect $way $userspace
  p OWN > $way.ping 2>&1 || true; p BEYOND >> $way.ping 2>&1 || true
  p -I HOME_V6 BEYOND_V6 >> $way.ping 2>&1 || true; p -s 3000 -M dont BEYOND >> $way.ping 2>&1 || true
  lns iperf3 -s -1 -D -B BEYOND_V6; sleep 0.5
  lac iperf3 -6 -J -n 300000 -c BEYOND_V6 -B HOME_V6 > $way.iperf3 || true
  leave $way
done
kill $headend; wait $headend
cp *.log *.detail *.ended *.ping *.addresses *.iperf3 $work
"#;

/// Both authentication methods, the first with the kernel's L2TP below pppd, the second with xl2tpd's own.
pub(crate) fn is_our_client(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    std::fs::copy(bench.work.pppd(), bench.directory.join("pppd"))
        .context("Debian's pppd, which only root and group dip may read")?;
    private_file(bench, "users.toml", USERS)?;
    let ppp = "authenticate = [\"chap\", \"pap\"]\necho_interval_s = 1";
    let routes = format!("routes = [\"{NETWORK_V6}\"]");
    let settings = lns_settings(ppp, &routes, "[users]\nfile = \"users.toml\"\n");
    let head = "[control]\nsocket = \"/tmp/lns.sock\"\n[lns]\nlisten = [\"10.9.0.2:1701\"]\n";
    private_file(bench, "lns.toml", &format!("{head}{settings}"))?;
    for (way, other) in [("chap", "pap"), ("pap", "chap")] {
        let options = format!(
            "noauth\nnodefaultroute\nuser ann\npassword sesame\nrefuse-{other}\ndebug\ndebug\nlogfile /tmp/{way}.pppd.log\n\
             lcp-echo-interval 1\nlcp-echo-failure 4\n+ipv6\nmtu 1400\nmru 1400\nipcp-accept-local\nipcp-accept-remote\n"
        );
        std::fs::write(bench.directory.join(format!("{way}.ppp")), options)?;
    }
    let script = GUEST
        .replace("BEYOND_V6", BEYOND_V6)
        .replace("HOME_V6", HOME_V6)
        .replace("BEYOND", BEYOND)
        .replace("OWN", OWN);
    kernel::boot(bench, &script)?;
    ["chap", "pap"]
        .into_iter()
        .try_for_each(|way| went_well(bench, way).with_context(|| way.to_owned()))
}

/// The output of pppd, ping, iperf3 and headend for one method.
fn went_well(bench: &Bench<'_>, way: &str) -> Result<()> {
    let read = |name: &str| {
        let path = bench.directory.join(format!("{way}.{name}"));
        std::fs::read_to_string(path).with_context(|| name.to_owned())
    };
    let pppd = read("pppd.log")?;
    let proof = match way {
        "chap" => "CHAP authentication succeeded",
        _ => "PAP authentication succeeded",
    };
    // Our CDN follows our Terminate-Ack; if xl2tpd carries the data itself, it hangs up before pppd reads that.
    let gone = match way {
        "chap" => "rcvd [LCP TermAck",
        _ => "Connection terminated",
    };
    for said in [
        proof,
        "local  IP address 10.64.0.77",
        &format!("remote IP address {OWN}"),
        "remote LL address fe80::",
        // Each end sends an Echo-Request, and each end replies.
        "rcvd [LCP EchoRep",
        "sent [LCP EchoRep",
        "sent [LCP TermReq",
        gone,
    ] {
        ensure!(pppd.contains(said), "pppd did not say {said:?}: {pppd}");
    }
    let addresses = read("addresses")?;
    ensure!(addresses.contains("10.64.0.77"), "{addresses}");
    let pings = read("ping")?;
    ensure!(pings.matches(" 0% packet loss").count() == 4, "{pings}");
    let iperf3: Value = serde_json::from_str(&read("iperf3")?).context("iperf3's result")?;
    let received = &iperf3["end"]["sum_received"]["bytes"];
    ensure!(
        received.as_u64().is_some_and(|octets| octets >= 100_000),
        "{iperf3}"
    );

    let detail = first(&read("detail")?)?;
    ensure!(
        detail["name"] == "ann" && detail["state"] == "up" && detail["mtu"] == 1400,
        "{detail}"
    );
    ensure!(
        detail["ppp"]["lcp"]["local"]["authentication"]
            .as_str()
            .is_some_and(|agreed| agreed.starts_with(way)),
        "{detail}"
    );
    ensure!(detail["ppp"]["claims"] == 1, "{detail}");
    let ended = first(&read("ended")?)?;
    // User-Request (RFC 2866, section 5.10).
    ensure!(
        ended["reason"] == "the peer ended it" && ended["terminate_cause"] == 1,
        "{ended}"
    );
    Ok(())
}

fn first(text: &str) -> Result<Value> {
    let line = text.lines().next().context("no row")?;
    serde_json::from_str(line).with_context(|| line.to_owned())
}
