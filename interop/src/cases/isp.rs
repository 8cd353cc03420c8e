//! docs/isp.md, followed line by line on three hosts in a guest: the customer is pppd with the kernel's PPPoE.
//!
//! ```text
//! (namespace "customer") pppd -- wan0 ==== access -- headend (namespace "edge") -- uplink ==== wire (namespace "internet")
//! ```

use crate::kernel;
use crate::runner::Bench;
use crate::subscribers::private_file;
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;

/// The hosts before the page's first line. The guest's own `/etc` can be read only, so what the page needs of it is copied.
const HOSTS: &str = r#"set -e
work=$PWD
mount --bind $work/pppd /usr/sbin/pppd
modprobe -a tun pppoe veth 8021q
mkdir -p /tmp/etc/ppp/peers /tmp/etc/headend /tmp/bin /run/headend
for f in passwd group hosts nsswitch.conf ld.so.cache protocols services alternatives; do cp -rL /etc/$f /tmp/etc/ || true; done
echo headend:x:998:998::/:/bin/false >> /tmp/etc/passwd; echo headend:x:998: >> /tmp/etc/group
touch /tmp/etc/ppp/options /tmp/etc/ppp/chap-secrets /tmp/etc/ppp/pap-secrets
mount --bind /tmp/etc /etc
ln -s headend/headend.sock /run/headend.sock; chown headend: /run/headend
rights=+net_admin,+net_bind_service,+net_raw
AS_THE_UNIT="setpriv --reuid headend --regid headend --clear-groups --inh-caps -all,$rights --ambient-caps -all,$rights"
chmod 755 /tmp /tmp/etc /tmp/etc/headend; chmod 666 /dev/net/tun
cp headend /tmp/bin; export PATH=/tmp/bin:$PATH
for n in edge customer internet; do ip netns add $n; ip -n $n link set lo up; done
ip link add wan0 netns customer type veth peer name access netns edge
ip link add wire netns internet type veth peer name uplink netns edge
ip -n internet addr add 192.0.2.1/30 dev wire; ip -n internet addr add 2001:db8:ffff::1/64 dev wire nodad
ip -n internet link set wire up
ip -n internet route add 198.51.100.0/24 via 192.0.2.2
for net in 2001:db8:1::/48 2001:db8:4000::/40; do ip -n internet route add $net via 2001:db8:ffff::2; done
fails() { echo "not so: $*" >&2; cp /tmp/headend.log $work || true; exit 1; }
soon() { for i in $(seq 100); do "$@" && return; sleep 0.1; done; fails "$@"; }
line() { ip netns exec $1 bash -c "$3" > $work/$2.out 2>&1; }
once() { line "$@" || fails "$3: $(cat $work/$2.out)"; }
"#;

/// One line that the page has a reader type.
struct Line<'p> {
    host: &'p str,
    command: &'p str,
}

/// The files and the lines of a page, in order.
struct Page<'p> {
    files: Vec<(&'p str, String)>,
    lines: Vec<Line<'p>>,
}

fn read(text: &str) -> Page<'_> {
    let mut page = Page {
        files: Vec::new(),
        lines: Vec::new(),
    };
    // Odd pieces are between two fences.
    for block in text.split("```").skip(1).step_by(2) {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        if let Some((_, path)) = head.split_once(' ') {
            page.files.push((path, body.to_owned()));
            continue;
        }
        for line in body.lines() {
            if let Some((host, command)) = line.split_once("# ") {
                page.lines.push(Line { host, command });
            }
        }
    }
    page
}

/// What the guest does for a line of the page.
fn step(number: usize, line: &Line<'_>) -> String {
    let Line { host, command } = line;
    let quoted = command.replace('\'', r"'\''");
    match *command {
        // The guest has no packages and no systemd.
        "apt install ./headend.deb" => String::new(),
        "systemctl enable --now headend" => format!(
            "ip netns exec {host} $AS_THE_UNIT headend run --config /etc/headend/headend.toml > /tmp/headend.log 2>&1 & headend=$!\n\
             soon test -S /run/headend/headend.sock\n"
        ),
        // The first Router Advertisement may arrive after pppd's line has its IPv4 address.
        ping if ping.starts_with("ping ") => format!("soon line {host} {number} '{quoted}'\n"),
        _ => format!("once {host} {number} '{quoted}'\n"),
    }
}

/// The page's configuration, its lines in order, and what they print.
pub(crate) fn in_an_evening(bench: &Bench<'_>) -> Result<()> {
    let text = std::fs::read_to_string(bench.root.join("docs/isp.md"))?;
    let page = read(&text);
    ensure!(page.lines.len() >= 20 && page.files.len() >= 4);
    kernel::bring_headend(bench)?;
    std::fs::copy(bench.work.pppd(), bench.directory.join("pppd"))
        .context("Debian's pppd, which only root and group dip may read")?;
    let mut script = HOSTS.to_owned();
    for (number, (path, body)) in page.files.iter().enumerate() {
        private_file(bench, &format!("{number}.file"), body)?;
        if path.starts_with('/') {
            let _ = writeln!(script, "install -m 644 $work/{number}.file {path}");
        }
    }
    for (number, line) in page.lines.iter().enumerate() {
        script += &step(number, line);
    }
    // Sections to add to the configuration have no path.
    for (number, (path, _)) in page.files.iter().enumerate() {
        if !path.starts_with('/') {
            let _ = writeln!(
                script,
                "cat /etc/headend/headend.toml $work/{number}.file > /etc/headend/more.toml; chmod 600 /etc/headend/more.toml\n\
                 once edge more-{number} 'headend check /etc/headend/more.toml'"
            );
        }
    }
    script += "kill $headend; wait $headend\ncp /tmp/headend.log $work\n";
    kernel::boot(bench, &script)?;
    let printed = |command: &str| {
        let number = page.lines.iter().position(|line| line.command == command);
        let number = number.with_context(|| format!("the page has no {command:?}"))?;
        let path = bench.directory.join(format!("{number}.out"));
        std::fs::read_to_string(path).with_context(|| command.to_owned())
    };
    let up = printed("ip address show dev ppp0")?;
    ensure!(
        up.contains("inet 198.51.100.") && up.contains("inet6 2001:db8:1:"),
        "{up}"
    );
    for line in page
        .lines
        .iter()
        .filter(|line| line.command.starts_with("ping"))
    {
        let pings = printed(line.command)?;
        ensure!(pings.contains(" 0% packet loss"), "{pings}");
    }
    let detail = printed("headend show subscriber ann@example.net")?;
    for part in ["2001:db8:1:", "silver", "customer"] {
        ensure!(detail.contains(part), "{part}: {detail}");
    }
    let change = printed("headend session set ann@example.net --template gold")?;
    ensure!(change.contains("gold"), "{change}");
    let curl = page
        .lines
        .iter()
        .find(|line| line.command.starts_with("curl"));
    let redirect = printed(curl.context("no curl")?.command)?;
    ensure!(redirect.trim() == "302 http://192.0.2.1/pay", "{redirect}");
    Ok(())
}
