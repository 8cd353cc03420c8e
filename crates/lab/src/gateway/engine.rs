//! The engines that can shape in the gateway: ours in user space, or the kernel's queues.
//!
//! | engine | what shapes |
//! |---|---|
//! | `user` | the queues of `headend qos run`, in a box between the gateway and the modem |
//! | `kernel` | the queues that `headend qos apply` makes on the gateway's interface towards the modem |
//! | `cake` | the kernel's cake there, set up by the lines of [`Cake::lines`] |
//!
//! With `kernel` and `cake` the box stays in place, and passes all packets on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use reactor::namespace::Namespace;

/// The interface of the gateway towards the modem.
pub(super) const WAN: &str = "wan0";

/// The interface to which cake's lines redirect packets that arrive at [`WAN`].
const IFB: &str = "ifb4wan0";

/// An engine, with what it needs to be set up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Engine {
    /// headend's own queues.
    #[default]
    User,
    /// The kernel's queues, by `headend qos apply`.
    Kernel(Apply),
    /// The kernel's cake.
    Cake(Cake),
}

/// What `headend qos apply` needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apply {
    /// The program.
    pub headend: PathBuf,
    /// The text of the policy file.
    pub policy: String,
}

/// Rates of cake in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cake {
    /// Upstream.
    pub up_bps: u64,
    /// Downstream.
    pub down_bps: u64,
}

impl Engine {
    /// The names of all engines.
    pub const NAMES: [&'static str; 3] = ["user", "kernel", "cake"];

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::User => Self::NAMES[0],
            Self::Kernel(_) => Self::NAMES[1],
            Self::Cake(_) => Self::NAMES[2],
        }
    }

    /// Sets up its queues on the interface `wan0` of `namespace`, where it is the gateway. Returns
    /// what the kernel lacks, a sentence each. The queues vanish with the namespace.
    ///
    /// # Errors
    /// A program is missing, or refused; the text is what the program printed.
    pub fn set_up(&self, namespace: &Namespace) -> io::Result<Vec<String>> {
        match self {
            Self::User => Ok(Vec::new()),
            Self::Kernel(apply) => apply.run(namespace),
            Self::Cake(cake) => {
                for line in cake.lines() {
                    let mut words = line.split(' ');
                    let mut command = Command::new(words.next().unwrap_or_default());
                    run(command.args(words), namespace)?;
                }
                Ok(Vec::new())
            }
        }
    }

    /// Sets it up in a namespace made for this. Returns as [`Engine::set_up`].
    ///
    /// # Errors
    /// As [`Engine::set_up`].
    pub fn try_out(&self) -> io::Result<Vec<String>> {
        if *self == Self::User {
            return Ok(Vec::new());
        }
        let namespace = Namespace::new()?;
        let mut netlink = namespace.netlink()?;
        netlink.add_veth(WAN, "far0", None)?;
        for name in [WAN, "far0"] {
            netlink.set_up(name, true)?;
        }
        self.set_up(&namespace)
    }

    /// How it is set up, a sentence each.
    #[must_use]
    pub fn how(&self) -> Vec<String> {
        match self {
            Self::User => {
                vec!["user: headend's own queues, those of headend qos run, in a box between gateway and modem.".into()]
            }
            Self::Kernel(_) => {
                vec![format!(
                    "kernel: headend qos apply POLICY --wan {WAN} in the gateway; downloads are shaped as they arrive there."
                )]
            }
            Self::Cake(cake) => {
                let lines = cake.lines().join("; ");
                vec![format!("cake: {lines}.")]
            }
        }
    }
}

impl Apply {
    fn run(&self, namespace: &Namespace) -> io::Result<Vec<String>> {
        let directory = Directory::new()?;
        let file = directory.0.join("policy.toml");
        fs::write(&file, &self.policy)?;
        let mut command = Command::new(&self.headend);
        command.args(["qos", "apply"]).arg(&file);
        command.args(["--wan", WAN, "--state"]);
        command.arg(directory.0.join("state"));
        let said = run(&mut command, namespace)?;
        let advice = said
            .lines()
            .filter_map(|line| line.strip_suffix(" (advice)"));
        Ok(advice.map(str::to_owned).collect())
    }
}

impl Cake {
    /// The lines of tc(8) and ip(8), as OpenWrt's page on the details of SQM advises for a home
    /// with several hosts: each host the same share, by its address before NAT.
    #[must_use]
    pub fn lines(&self) -> [String; 6] {
        let Self { up_bps, down_bps } = self;
        [
            format!("tc qdisc replace dev {WAN} root cake bandwidth {up_bps}bit nat dual-srchost"),
            format!("ip link add name {IFB} type ifb"),
            format!("ip link set {IFB} up"),
            format!("tc qdisc add dev {WAN} handle ffff: ingress"),
            format!(
                "tc filter add dev {WAN} parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev {IFB}"
            ),
            format!(
                "tc qdisc replace dev {IFB} root cake bandwidth {down_bps}bit nat dual-dsthost ingress"
            ),
        ]
    }
}

/// Runs a command in a namespace. Returns its standard error.
fn run(command: &mut Command, namespace: &Namespace) -> io::Result<String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output = namespace
        .command(command)?
        .stdin(Stdio::null())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot start {name}: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    // The last line is the reason; advice comes before it.
    let reason = said.lines().last().unwrap_or("it gave no reason");
    Err(io::Error::other(format!("{name}: {reason}")))
}

/// A directory for one set-up. It is removed when this is dropped.
struct Directory(PathBuf);

impl Directory {
    fn new() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("headend-lab-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Fails if it exists already.
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_isolated_by_their_own_address_in_each_direction() {
        let cake = Cake {
            up_bps: 2_400_000,
            down_bps: 19_200_000,
        };
        let lines = cake.lines();
        let [up, .., down] = &lines;
        assert!(up.contains("dev wan0 root cake bandwidth 2400000bit nat dual-srchost"));
        assert!(
            down.contains("dev ifb4wan0 root cake bandwidth 19200000bit nat dual-dsthost ingress")
        );
        assert!(Engine::Cake(cake).how()[0].contains(up.as_str()));
    }

    #[test]
    fn engines_have_the_names_of_the_list() {
        let apply = Apply {
            headend: PathBuf::new(),
            policy: String::new(),
        };
        let cake = Cake {
            up_bps: 1,
            down_bps: 1,
        };
        let all = [Engine::User, Engine::Kernel(apply), Engine::Cake(cake)];
        assert_eq!(all.each_ref().map(Engine::name), Engine::NAMES);
    }
}
