//! The words of `imbrex serve`.

use std::path::PathBuf;

use clap::Args;

use super::size;

/// `imbrex serve`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").args(["image", "drive"]).required(true))]
#[command(group = clap::ArgGroup::new("as").args(["nbd", "ublk"]).required(true))]
pub struct ServeArgs {
    /// The image to serve.
    #[arg(value_name = "FILE")]
    pub image: Option<PathBuf>,

    /// Serve a new drive held in memory instead: PROFILE[+LAYER][:key=value,…]. What is written is gone at the end.
    #[arg(long, short = 'd', value_name = "DRIVE")]
    pub drive: Option<String>,

    /// Where NBD clients connect: unix:PATH, tcp:PORT (this machine alone) or tcp:HOST:PORT.
    #[arg(long, value_name = "ADDRESS")]
    pub nbd: Option<String>,

    /// Serve as the Linux block device /dev/ublkbID instead; without ID, the first that is free (Linux 6.0, as root).
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with = "tls_cert")]
    pub ublk: Option<Option<u32>>,

    /// How fast time passes: real, none (answer as fast as possible), or a factor such as 10x.
    #[arg(long, value_name = "PACE", default_value = "real", allow_hyphen_values = true)]
    pub time: String,

    /// Refuse writes; the image stays as it is.
    #[arg(long)]
    pub read_only: bool,

    /// Play the faults of this file in TOML (docs/drive.md) while serving, each at its time; they stay in an image.
    #[arg(long, value_name = "FILE", conflicts_with = "read_only")]
    pub faults: Option<PathBuf>,

    /// What barriers outlive: the death of this process (none), or of the host too (barrier).
    #[arg(long, value_name = "WHAT", default_value = "none", value_parser = ["none", "barrier"])]
    pub sync: String,

    /// Show the drive at work on a page at this address, such as 127.0.0.1:8080; /metrics there is for Prometheus.
    #[arg(long, value_name = "ADDRESS")]
    pub window: Option<String>,

    /// Give the drive's figures as text to whoever connects to this Unix socket.
    #[arg(long, value_name = "PATH")]
    pub stats: Option<PathBuf>,

    /// Take orders at this Unix socket, which you alone can connect to: snapshot, stats, shutdown (docs/serve.md). Without it
    /// the socket of an image that is written to lies in your runtime folder, where `imbrex drive snapshot` looks for it.
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,

    /// Certificate chain for TLS (PEM); then clients must speak it.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Clients must show a certificate signed by this one (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,

    /// What strangers may cost.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Bounds on the clients of a served drive. A peer is an address, a /64 network of IPv6, or a user at a Unix socket.
#[derive(Args, Debug)]
#[command(next_help_heading = "What strangers may cost")]
pub struct LimitArgs {
    /// NBD connections at once; each costs a thread, with a pace two, with TLS two more, and under a MiB. Where places run
    /// out, who never finished the handshake goes first, then the idle of the peer that holds most; no connection with a
    /// served request of a peer within its share.
    #[arg(long, value_name = "NUMBER", default_value = "256", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub connections: u32,

    /// Of them, from one peer.
    #[arg(long, value_name = "NUMBER", default_value = "128", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub peer_connections: u32,

    /// Memory for payloads that have come and for replies that have not gone yet, of all clients; 256 KiB of each
    /// connection do not count, and one request at a time may go over it by its 32 MiB.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub payload_memory: u64,

    /// Of it, for one peer.
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = size)]
    pub peer_payload_memory: u64,

    /// Bytes a second of such payloads for clients that never had a request served, all together.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub newcomer_rate: u64,

    /// While others wait for payload memory, a client may be busy so long with one payload or one reply.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = clap::value_parser!(u32).range(1..))]
    pub shortage_time: u32,

    /// A client has so long for its handshake, TLS included.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    pub handshake_time: u32,

    /// A request that has begun must arrive in this time, each further MiB of its payload in as long again. Between requests
    /// a client may be idle.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u32).range(1..))]
    pub request_time: u32,

    /// A client that takes nothing of its replies for so long is cut off.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..))]
    pub reply_time: u32,

    /// Connections to the live page at once, all on one thread; half of them from one peer.
    #[arg(long, value_name = "NUMBER", default_value = "64", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub page_connections: u32,

    /// Bytes of a request's head that the live page takes, 8 KiB at least.
    #[arg(long, value_name = "SIZE", default_value = "16KiB", value_parser = size)]
    pub page_header: u64,

    /// The live page waits so long for a request's head; a connection lasts for twelve times that at most.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub page_time: u32,

    /// A name that the live page answers to, beside localhost, 127.0.0.1, [::1] and the address it listens at; again for more.
    #[arg(long, value_name = "NAME")]
    pub http_host: Vec<String>,
}
