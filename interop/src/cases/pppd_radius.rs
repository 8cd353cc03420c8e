//! Debian's pppd proves itself through our LNS to Debian's freeradius, in a guest whose kernel supports PPP: by MS-CHAP
//! version 2, EAP-MD5 and EAP-TLS.
//!
//! ```text
//! (namespace "lac") pppd -- xl2tpd ==== wire ==== headend -- freeradius (namespace "lns")
//! ```

use crate::freeradius::{Eap, Replies, write_settings};
use crate::kernel;
use crate::runner::Bench;
use crate::subscribers::{OWN, lns_settings, private_file, radius_settings};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const USERS: &str = "ann Cleartext-Password := \"sesame\"\neve EAP-Type := 13\n";

/// The ways to prove oneself: their name, pppd's options, and what pppd prints about each.
const WAYS: [(&str, &str, &[&str]); 4] = [
    (
        "mschapv2",
        "user ann\npassword sesame\nrefuse-pap\nrefuse-chap\nrefuse-eap\n",
        &[
            "<auth chap MS-v2>",
            "rcvd [CHAP Success id=0x1 \"S=",
            "CHAP authentication succeeded",
            // It refused EAP, and was asked for the next method.
            "sent [LCP ConfNak id=0x1 <auth chap MS-v2>]",
        ],
    ),
    (
        "wrong",
        "user ann\npassword guess\nrefuse-pap\nrefuse-chap\nrefuse-eap\n",
        &[
            "MS-CHAP authentication failed",
            "E=691 R=0 C=",
            "V=3 M=Authentication rejected",
        ],
    ),
    (
        "eap-md5",
        "user ann\npassword sesame\nrefuse-pap\nrefuse-chap\nrefuse-mschap-v2\n",
        &[
            "<auth eap>",
            "rcvd [EAP Request id=0x1 Identity",
            "MD5-Challenge",
            "rcvd [EAP Success",
        ],
    ),
    (
        "eap-tls",
        "user eve\nca /tmp/ca.pem\ncert /tmp/client.pem\nkey /tmp/client.key\nrefuse-pap\nrefuse-chap\nrefuse-mschap-v2\n",
        &[
            "<auth eap>",
            "rcvd [EAP Request id=0x1 Identity",
            "EAP-TLS",
            "rcvd [EAP Success",
        ],
    ),
];

const GUEST: &str = r#"set -e
work=$PWD
mount --bind $work/pppd /usr/sbin/pppd
modprobe -a tun ppp_async l2tp_ppp veth
ip netns add lns; ip netns add lac
ip link add wire netns lac type veth peer name wire netns lns
for n in lac lns; do ip -n $n link set lo up; ip -n $n link set wire up; done
ip -n lac addr add 10.9.0.1/24 dev wire; ip -n lns addr add 10.9.0.2/24 dev wire
cp -r headend *.toml *.ppp *.pem *.key raddb /tmp; cd /tmp; chmod 600 lns.toml *.key
soon() { for i in $(seq 300); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done; echo "not so: $*" >&2; cp *.log *.conf $work; exit 1; }
ip netns exec lns freeradius -f -l stdout -xx -d /tmp/raddb > freeradius.log 2>&1 & server=$!
soon grep -q 'Ready to process requests' freeradius.log
ip netns exec lns ./headend run --config lns.toml > headend-lns.log 2>&1 & headend=$!
soon ./headend show server --socket lns.sock
mkdir -p /run/xl2tpd
for way in WAYS; do
  printf '[global]\nlisten-addr = 10.9.0.1\nforce userspace = no\n[lac x]\nlns = 10.9.0.2\nautodial = yes\nrequire authentication = no\npppoptfile = /tmp/%s.ppp\n' $way > $way.conf
  ip netns exec lac xl2tpd -D -c $way.conf -p $way.pid -C $way.control > $way.xl2tpd.log 2>&1 & xl2tpd=$!
  case $way in
  wrong) soon grep -q 'Connection terminated' $way.pppd.log;;
  *)
    soon grep -q 'remote IP address' $way.pppd.log; sleep 1
    ./headend show subscribers --json --socket lns.sock > $way.rows
    kill $(cat /run/ppp0.pid); soon grep -q 'Connection terminated' $way.pppd.log;;
  esac
  kill $xl2tpd; wait $xl2tpd || true
  gone() { ./headend show subscribers --json --socket lns.sock > gone.rows && ! [ -s gone.rows ]; }; soon gone
done
./headend show radius --json --socket lns.sock > radius.rows
./headend show subscribers --ended --json --socket lns.sock > ended.rows
kill $headend; wait $headend
kill $server; wait $server || true
cp *.log *.rows $work
"#;

/// Each way in turn.
pub(crate) fn proves_itself(bench: &Bench<'_>) -> Result<()> {
    kernel::bring_headend(bench)?;
    let directory = &bench.directory;
    std::fs::copy(bench.work.pppd(), directory.join("pppd"))
        .context("Debian's pppd, which only root and group dip may read")?;
    certificates(directory)?;
    write_settings(
        directory,
        Path::new("/tmp"),
        USERS,
        Replies::Proven,
        Eap::On,
    )?;
    let ppp = "authenticate = [\"eap\", \"mschapv2\"]\n";
    let settings = lns_settings(ppp, "", &radius_settings());
    let head = "[control]\nsocket = \"/tmp/lns.sock\"\n[lns]\nlisten = [\"10.9.0.2:1701\"]\n";
    private_file(bench, "lns.toml", &format!("{head}{settings}"))?;
    for (way, options, _) in WAYS {
        let options = format!(
            "noauth\nnodefaultroute\n{options}debug\ndebug\nlogfile /tmp/{way}.pppd.log\nmtu 1400\nmru 1400\n\
             ipcp-accept-local\nipcp-accept-remote\nrefuse-mschap\n"
        );
        std::fs::write(directory.join(format!("{way}.ppp")), options)?;
    }
    kernel::boot(
        bench,
        &GUEST.replace("WAYS", &WAYS.map(|way| way.0).join(" ")),
    )?;
    for (way, _, printed) in WAYS {
        went_well(directory, way, printed).with_context(|| way.to_owned())?;
    }
    let ended = rows(directory, "ended.rows")?;
    let rejected = |row: &Value| {
        row["reason"]
            .as_str()
            .is_some_and(|why| why.contains("reject"))
    };
    ensure!(
        ended.iter().filter(|row| rejected(row)).count() == 1,
        "{ended:?}"
    );
    let servers = rows(directory, "radius.rows")?;
    let challenges: u64 = servers
        .iter()
        .filter_map(|row| row["challenges"].as_u64())
        .sum();
    // One of EAP-MD5, and several of EAP-TLS, whose certificates take several packets.
    ensure!(challenges > 4, "{challenges} challenges: {servers:?}");
    Ok(())
}

fn went_well(directory: &Path, way: &str, printed: &[&str]) -> Result<()> {
    let pppd = std::fs::read_to_string(directory.join(format!("{way}.pppd.log")))?;
    for said in printed {
        ensure!(pppd.contains(said), "pppd did not say {said:?}: {pppd}");
    }
    if way == "wrong" {
        return Ok(());
    }
    let remote = format!("remote IP address {OWN}");
    ensure!(pppd.contains(&remote), "{pppd}");
    let row = rows(directory, &format!("{way}.rows"))?;
    let name = if way == "eap-tls" { "eve" } else { "ann" };
    ensure!(
        row.len() == 1 && row[0]["name"] == name && row[0]["state"] == "up",
        "{row:?}"
    );
    Ok(())
}

fn rows(directory: &Path, name: &str) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(directory.join(name)).with_context(|| name.to_owned())?;
    let read = |line: &str| serde_json::from_str(line).with_context(|| line.to_owned());
    text.lines().map(read).collect()
}

/// An authority, and certificates of the server and of eve.
fn certificates(directory: &Path) -> Result<()> {
    openssl(
        directory,
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 3650 -subj /CN=authority",
    )?;
    for (name, subject) in [("server", "/CN=headend"), ("client", "/CN=eve")] {
        openssl(
            directory,
            &format!(
                "req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj {subject}"
            ),
        )?;
        openssl(
            directory,
            &format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {name}.pem -days 3650"
            ),
        )?;
    }
    Ok(())
}

fn openssl(directory: &Path, arguments: &str) -> Result<()> {
    let output = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(directory)
        .output()
        .context("openssl")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "openssl {arguments}: {printed}");
    Ok(())
}
