//! accel-ppp as access concentrator of our client, and as LNS behind our LAC, in a guest whose kernel has PPPoE and L2TP.
//!
//! ```text
//! (namespace "host") headend -- wire ==== wire -- accel-pppd (namespace "bng")
//! (namespace "host") pppd -- wire ==== wire -- headend (namespace "bng") -- core ==== core -- accel-pppd (namespace "far")
//! ```

use super::pppoe::{HOSTS, bring, first};
use crate::kernel;
use crate::runner::Bench;
use crate::subscribers::{BEYOND, private_file};
use anyhow::{Context, Result, ensure};
use std::path::Path;

/// A whole configuration of accel-ppp, with these sections for its access protocol.
pub(super) fn settings(place: &Path, protocol: &str, sections: &str) -> String {
    format!(
        "[modules]\npath={}\nlog_file\n{protocol}\nauth_chap_md5\nippool\nchap-secrets\n\
         [core]\nlog-error=/tmp/accel-core.log\nthread-count=1\n\
         [ppp]\nverbose=1\nmin-mtu=1280\nmtu=1400\nmru=1400\nipv4=require\nipv6=deny\nccp=0\n\
         [auth]\n{sections}\n\
         [client-ip-range]\ndisable\n\
         [ip-pool]\ngw-ip-address=10.9.9.1\n10.9.9.7-10\n\
         [chap-secrets]\ngw-ip-address=10.9.9.1\nchap-secrets=/tmp/accel.secrets\n\
         [log]\nlog-file=/tmp/accel.log\nlevel=5\ncopy=0\n",
        place.join("modules").display()
    )
}

const ACCEL: &str = r#"
modprobe -a l2tp_ppp l2tp_netlink; printf 'ann * sesame *\nann@isp.example * sesame *\n' > accel.secrets; chmod 600 accel.secrets
cp $work/accel.conf .
"#;

const CLIENT: &str = r#"
ip -n bng addr add BEYOND/32 dev lo
ip netns exec bng ACCEL -c /tmp/accel.conf > accel.out.log 2>&1 & accel=$!
sleep 1
ip netns exec host ./headend run --config host.toml > headend.log 2>&1 & headend=$!
soon ./headend show server --socket host.sock
up() { host ip route show table local | grep -q '10\.9\.9\.'; }; soon up
host ping -n -c 3 -i 0.2 -W 2 BEYOND > client.ping 2>&1 || true
./headend show subscribers --json --socket host.sock > client.subscribers
# The access concentrator ends, and is there again.
kill $accel; wait $accel || true
ended() { ./headend show subscribers --ended --json --socket host.sock | grep -q subscriber.ended; }; soon ended
ip netns exec bng ACCEL -c /tmp/accel.conf > accel.out.log 2>&1 & accel=$!
sleep 1; soon up
host ping -n -c 3 -i 0.2 -W 2 BEYOND > client2.ping 2>&1 || true
kill $headend; wait $headend
soon grep -q 'recv .PPPoE PADT' accel.log
kill $accel; wait $accel || true
cp *.log client* $work
"#;

/// accel-ppp as the peer of our client; it ends, and comes back.
pub(crate) fn connects_our_client(bench: &Bench<'_>) -> Result<()> {
    let place = bench.accel_ppp.context("accel-ppp")?;
    bring(bench)?;
    let settings_of_host = "[control]\nsocket = \"/tmp/host.sock\"\n[log]\nlevel = \"debug\"\n\
         [client]\nname = \"ann\"\nsecret = \"sesame\"\npppoe = \"wire\"\npppoe_service = \"gold\"\npppoe_ac = \"there\"\n\
         default_route = true\n[ppp]\naddress = \"10.64.255.1\"\nauthenticate = \"nobody\"\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n[tun]\nname = \"outside\"\n";
    private_file(bench, "host.toml", settings_of_host)?;
    std::fs::write(bench.directory.join("server.ppp"), "")?;
    let sections = "[pppoe]\nverbose=1\nac-name=there\nservice-name=gold\ninterface=wire\n";
    let conf = settings(place, "pppoe", sections);
    std::fs::write(bench.directory.join("accel.conf"), conf)?;
    let program = place.join("accel-pppd");
    let script = [HOSTS, ACCEL, CLIENT]
        .concat()
        .replace("BEYOND", BEYOND)
        .replace("ACCEL", &program.to_string_lossy());
    kernel::boot(bench, &script)?;
    let read = |name: &str| {
        let path = bench.directory.join(name);
        std::fs::read_to_string(path).with_context(|| name.to_owned())
    };
    for name in ["client.ping", "client2.ping"] {
        let pings = read(name)?;
        ensure!(pings.contains(" 0% packet loss"), "{name}: {pings}");
    }
    let row = first(&read("client.subscribers")?)?;
    ensure!(row["role"] == "client" && row["access"] == "pppoe", "{row}");
    let address = row["address"].as_str().unwrap_or_default();
    ensure!(address.starts_with("10.9.9."), "{row}");
    let accel = read("accel.log")?;
    // The name of the service was asked for, and both sides ended with PADT.
    for said in [
        "<Service-Name gold>",
        "send [PPPoE PADS",
        "recv [PPPoE PADT",
        "send [PPPoE PADT",
    ] {
        ensure!(
            accel.contains(said),
            "accel-ppp did not say {said:?}: {accel}"
        );
    }
    Ok(())
}

const CALLS: &str = r#"
ip netns add far
ip link add core netns bng type veth peer name core netns far
ip -n far link set lo up; for n in bng far; do ip -n $n link set core up; done
ip -n bng addr add 10.8.0.1/24 dev core; ip -n far addr add 10.8.0.2/24 dev core
ip -n far addr add BEYOND/32 dev lo
ip netns exec far ACCEL -c /tmp/accel.conf > accel.out.log 2>&1 & accel=$!
sleep 1
ip netns exec bng ./headend run --config bng.toml > headend.log 2>&1 & headend=$!
soon ./headend show server --socket bng.sock
ip netns exec host pppd file host.ppp logfile /tmp/host.pppd.log plugin rp-pppoe.so rp_pppoe_ac bng1 wire & pppd=$!
soon grep -q 'remote IP address' host.pppd.log
host ip route add BEYOND dev ppp0
host ping -n -c 3 -i 0.2 -W 2 10.9.9.1 > call.ping 2>&1 || true
host ping -n -c 3 -i 0.2 -W 2 -s 1372 -M do BEYOND >> call.ping 2>&1 || true
ip netns exec far iperf3 -s -1 -D -B BEYOND; sleep 0.5
host iperf3 -J -n 300000 -R -c BEYOND > call.iperf3 || true
./headend show subscriber ann@isp.example --json --socket bng.sock > call.lac
kill $pppd; wait $pppd || true
none() { ./headend show sessions --json --socket bng.sock | grep -c session/1 | grep -q '^0$'; }; soon none
kill $headend; wait $headend
kill $accel; wait $accel || true
cp *.log call.* $work
"#;

/// accel-ppp as LNS: the kernel's PPPoE host calls our access concentrator, which hands the call over.
pub(crate) fn ends_our_calls(bench: &Bench<'_>) -> Result<()> {
    let place = bench.accel_ppp.context("accel-ppp")?;
    bring(bench)?;
    private_file(bench, "nobody.toml", "")?;
    let lac = "[control]\nsocket = \"/tmp/bng.sock\"\n[log]\nlevel = \"debug\"\n\
               [pppoe]\nac_name = \"bng1\"\n[[pppoe.interface]]\nname = \"wire\"\n[lac]\n\
               [[tunnel]]\nname = \"isp\"\nlns = [\"10.8.0.2\"]\nsecret = \"lantern\"\nrealms = [\"isp.example\"]\n\
               [ppp]\naddress = \"10.64.255.2\"\nauthenticate = [\"chap\"]\n[users]\nfile = \"nobody.toml\"\n";
    private_file(bench, "bng.toml", lac)?;
    let options = "nodetach\nnoauth\nnodefaultroute\nuser ann@isp.example\npassword sesame\ndebug\nnoipv6\nmtu 1400\nmru 1400\n";
    private_file(bench, "host.ppp", options)?;
    let sections = format!(
        "[l2tp]\nverbose=1\nbind=10.8.0.2\nhost-name=accel\nsecret=lantern\ndictionary={}\n",
        place.join("dictionary/dictionary").display()
    );
    let conf = settings(place, "l2tp", &sections);
    std::fs::write(bench.directory.join("accel.conf"), conf)?;
    let program = place.join("accel-pppd");
    let script = [HOSTS, ACCEL, CALLS]
        .concat()
        .replace("BEYOND", BEYOND)
        .replace("ACCEL", &program.to_string_lossy());
    kernel::boot(bench, &script)?;
    let read = |name: &str| {
        let path = bench.directory.join(name);
        std::fs::read_to_string(path).with_context(|| name.to_owned())
    };
    let pppd = read("host.pppd.log")?;
    ensure!(pppd.contains("CHAP authentication succeeded"), "{pppd}");
    ensure!(pppd.contains("remote IP address 10.9.9.1"), "{pppd}");
    let pings = read("call.ping")?;
    ensure!(pings.matches(" 0% packet loss").count() == 2, "{pings}");
    let iperf3: serde_json::Value = serde_json::from_str(&read("call.iperf3")?)?;
    let received = iperf3["end"]["sum_received"]["bytes"].as_u64();
    ensure!(received >= Some(100_000), "{iperf3}");
    let lac = first(&read("call.lac")?)?;
    ensure!(
        lac["lns"]["address"] == "10.8.0.2:1701" && lac["lns"]["state"] == "has it",
        "{lac}"
    );
    let accel = read("accel.log")?;
    ensure!(accel.contains("ann@isp.example"), "{accel}");
    Ok(())
}
