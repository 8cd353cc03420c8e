//! Sessions that our LAC hands over: the kernel's PPPoE host, our access concentrator and LAC, and two LNSs behind it,
//! ours and xl2tpd with pppd.
//!
//! ```text
//! (namespace "host") pppd -- wire ==== wire -- headend (namespace "bng") -- core ==== core -- headend, xl2tpd (namespace "far")
//! ```

use crate::kernel;
use crate::runner::Bench;
use crate::subscribers::{BEYOND, OWN, lns_settings, private_file};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::pppoe::{HOSTS, bring, first};

const USERS: &str =
    "[[user]]\nname = \"ann@isp.example\"\npassword = \"sesame\"\naddress = \"10.64.0.77\"\n";

/// The host connects; then the first LNS is killed, and the host calls again.
const SCRIPT: &str = r#"
ip netns add far
ip link add core netns bng type veth peer name core netns far
ip -n far link set lo up; for n in bng far; do ip -n $n link set core up; done
ip -n bng addr add 10.8.0.1/24 dev core
for a in 10.8.0.2 10.8.0.3; do ip -n far addr add $a/24 dev core; done
ip -n far addr add BEYOND/32 dev lo
mkdir -p ppp; printf '* * sesame *\n' > ppp/chap-secrets; cp ppp/chap-secrets ppp/pap-secrets; chmod 600 ppp/*
mount --bind ppp /etc/ppp
ip netns exec far ./headend run --config far.toml > far.log 2>&1 & far=$!
soon ./headend show server --socket far.sock
ip netns exec bng ./headend run --config bng.toml > headend.log 2>&1 & headend=$!
soon ./headend show server --socket bng.sock
ip netns exec host pppd file host.ppp logfile /tmp/first.pppd.log plugin rp-pppoe.so rp_pppoe_ac bng1 wire & pppd=$!
soon grep -q 'remote IP address' first.pppd.log
host ip route add BEYOND dev ppp0
host ping -n -c 3 -i 0.2 -W 2 OWN > first.ping 2>&1 || true
host ping -n -c 3 -i 0.2 -W 2 -s 1464 -M do BEYOND >> first.ping 2>&1 || true
bng true; ip netns exec far iperf3 -s -1 -D -B BEYOND; sleep 0.5
host iperf3 -J -n 300000 -R -c BEYOND > first.iperf3 || true
./headend show subscriber ann@isp.example --json --socket bng.sock > first.lac
./headend show subscriber ann@isp.example --json --socket far.sock > first.lns
./headend show sessions --json --socket bng.sock > first.sessions
# The LNS is gone: the host calls again, and the other LNS has its session.
ip netns exec far xl2tpd -D -c /tmp/xl2tpd.conf -p /tmp/xl2tpd.pid -C /tmp/xl2tpd.control > xl2tpd.log 2>&1 & xl2tpd=$!
kill -9 $far; wait $far || true
soon grep -q 'Modem hangup\|PADT\|Connection terminated' first.pppd.log
wait $pppd || true
ip netns exec host pppd file host.ppp logfile /tmp/second.pppd.log plugin rp-pppoe.so rp_pppoe_ac bng1 wire & pppd=$!
soon grep -q 'remote IP address' second.pppd.log
host ping -n -c 3 -i 0.2 -W 2 10.77.0.1 > second.ping 2>&1 || true
./headend show subscriber ann@isp.example --json --socket bng.sock > second.lac
./headend show counters --json --socket bng.sock > counters
kill $pppd; wait $pppd || true
gone() { ! ./headend show subscriber ann@isp.example --socket bng.sock; }; soon gone
none() { ./headend show sessions --json --socket bng.sock | grep -c session/1 | grep -q '^0$'; }; soon none
./headend show subscribers --ended --json --socket bng.sock > ended
kill $xl2tpd; wait $xl2tpd || true
kill $headend; wait $headend
cp *.log first.* second.* counters ended $work
"#;

const XL2TPD: &str = "[global]\nlisten-addr = 10.8.0.3\nauth file = /tmp/xl2tpd.secrets\n\
    [lns default]\nhostname = xl2tpd.test\nip range = 10.77.0.2-10.77.0.250\nlocal ip = 10.77.0.1\n\
    require authentication = no\nchallenge = yes\npppoptfile = /tmp/xl2tpd.ppp\n";

/// Two LNSs: the second takes over once the first is killed.
pub(crate) fn hands_over(bench: &Bench<'_>) -> Result<()> {
    bring(bench)?;
    private_file(bench, "users.toml", USERS)?;
    let far = lns_settings(
        "authenticate = [\"chap\"]",
        "",
        "[users]\nfile = \"users.toml\"\n",
    );
    let head = "[control]\nsocket = \"/tmp/far.sock\"\n[lns]\nlisten = [\"10.8.0.2:1701\"]\nsecret = \"lantern\"\n";
    private_file(bench, "far.toml", &format!("{head}{far}"))?;
    // The LAC knows no user.
    private_file(bench, "nobody.toml", "")?;
    let lac = "[control]\nsocket = \"/tmp/bng.sock\"\n[log]\nlevel = \"debug\"\n\
               [pppoe]\nac_name = \"bng1\"\n[[pppoe.interface]]\nname = \"wire\"\n\
               [lac]\n[l2tp]\nhello_interval_s = 1\nretransmit_first_s = 0.2\nretransmit_tries = 3\n\
               [[tunnel]]\nname = \"isp\"\nlns = [\"10.8.0.2\"]\nbackup = [\"10.8.0.3\"]\nsecret = \"lantern\"\n\
               realms = [\"isp.example\"]\n\
               [ppp]\naddress = \"10.64.255.2\"\nauthenticate = [\"chap\"]\n[users]\nfile = \"nobody.toml\"\n";
    private_file(bench, "bng.toml", lac)?;
    let options = "nodetach\nnoauth\nnodefaultroute\nuser ann@isp.example\npassword sesame\ndebug\nnoipv6\nmtu 1492\nmru 1492\n";
    private_file(bench, "host.ppp", options)?;
    private_file(bench, "xl2tpd.toml", XL2TPD)?;
    let script = [HOSTS, PEERS, SCRIPT]
        .concat()
        .replace("BEYOND", BEYOND)
        .replace("OWN", OWN);
    kernel::boot(bench, &script)?;
    took_over(bench)
}

/// The output of pppd, ping, iperf3 and headend, with the first LNS and with the second.
fn took_over(bench: &Bench<'_>) -> Result<()> {
    let read = |name: &str| {
        let path = bench.directory.join(name);
        std::fs::read_to_string(path).with_context(|| name.to_owned())
    };
    let pppd = read("first.pppd.log")?;
    for said in [
        "CHAP authentication succeeded",
        "local  IP address 10.64.0.77",
        &format!("remote IP address {OWN}"),
    ] {
        ensure!(pppd.contains(said), "pppd did not say {said:?}: {pppd}");
    }
    // RFC 2661, section 4.4.5: one LCP and one challenge, although two machines took part.
    let challenges = pppd.matches("rcvd [CHAP Challenge").count();
    ensure!(challenges == 1, "{challenges} challenges: {pppd}");
    let pings = read("first.ping")?;
    ensure!(pings.matches(" 0% packet loss").count() == 2, "{pings}");
    let iperf3: Value = serde_json::from_str(&read("first.iperf3")?).context("iperf3's result")?;
    let received = iperf3["end"]["sum_received"]["bytes"].as_u64();
    ensure!(received >= Some(100_000), "{iperf3}");
    let lac = first(&read("first.lac")?)?;
    ensure!(
        lac["lns"]["address"] == "10.8.0.2:1701" && lac["lns"]["state"] == "has it",
        "{lac}"
    );
    ensure!(lac["pppoe"]["interface"] == "wire", "{lac}");
    let session = first(&read("first.sessions")?)?;
    ensure!(
        session["subscriber"] == "ann@isp.example" && session["role"] == "lac-incoming",
        "{session}"
    );
    ensure!(
        session["other"]
            .as_str()
            .is_some_and(|other| other.starts_with("pppoe ")),
        "{session}"
    );
    let lns = first(&read("first.lns")?)?;
    let mac = lac["pppoe"]["mac"].as_str().unwrap_or_default();
    ensure!(lns["session"]["calling_number"] == mac, "{lns}");
    let second = first(&read("second.lac")?)?;
    ensure!(second["lns"]["address"] == "10.8.0.3:1701", "{second}");
    let pings = read("second.ping")?;
    ensure!(pings.contains(" 0% packet loss"), "{pings}");
    let counters = read("counters")?;
    ensure!(counters.contains("switched_taken"), "{counters}");
    let ended = read("ended")?;
    ensure!(ended.contains("the LNS: its tunnel ended"), "{ended}");
    Ok(())
}

/// xl2tpd and its pppd.
const PEERS: &str = r#"
mv xl2tpd.toml xl2tpd.conf; printf '* * lantern\n' > xl2tpd.secrets; chmod 600 xl2tpd.secrets
printf 'require-chap\nname there\nauth\ndebug\nlogfile /tmp/xl2tpd.pppd.log\nnoipv6\nmtu 1400\nmru 1400\n' > xl2tpd.ppp
"#;
