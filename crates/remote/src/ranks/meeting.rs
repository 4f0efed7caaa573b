//! How ranks form a run: see the documentation of the parent module.

use super::Board;
use crate::address::Address;
use crate::agent::{Agent, Settings};
use crate::keys::{self, Keys, Role};
use crate::message::{machine_identity, machine_name};
use crate::user;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The machine of a rank.
const HOST: &str = "host";
/// The plan of rank 0.
const PLAN: &str = "plan";
/// The address of a rank.
const PLACE: &str = "place";
/// The plans: sockets of one machine; TCP with the keys after this word, or without protection; no run, and rank 0
/// reports why.
const SOCKETS: &str = "sockets";
const KEYS: &str = "keys:";
const TCP: &str = "tcp";
const OFF: &str = "off";
/// The beginning of the entry of a rank without an address.
const NONE: &str = "none:";
/// How long a rank waits for rank 0 after it has published its address.
const PATIENCE: Duration = Duration::from_secs(60);

/// For how many days the keys of a run are valid.
const DAYS: u64 = 1;

/// The ranks of a launcher, on their way to a run.
pub struct Meeting {
    board: Box<dyn Board>,
    /// Rank 0 has announced its plan.
    is_over: bool,
}

/// Everything that rank 0 knows about the ranks.
#[derive(Debug)]
pub struct Gathered {
    /// The addresses of the ranks, rank 0 first.
    pub addresses: Vec<Address>,
    /// The keys for ranks that are reached over TCP; `None` = not needed, or the user has requested no encryption.
    pub keys: Option<Keys>,
}

/// The outcome for a rank other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It has served a run.
    Served,
    /// Rank 0 has called it off, and reports why.
    CalledOff,
}

impl Meeting {
    /// A meeting of the ranks on this board. All of them must attend: rank 0 calls off a run by dropping this value.
    pub fn new(board: Box<dyn Board>) -> Meeting {
        Meeting { board, is_over: false }
    }

    /// Whether this rank coordinates.
    pub fn leads(&self) -> bool {
        self.board.rank() == 0
    }

    /// For rank 0: collects the addresses of all ranks.
    ///
    /// # Errors
    /// The ranks do not find each other.
    pub fn gather(mut self, insecure: bool) -> Result<Gathered, String> {
        self.board.put(HOST, &host())?;
        self.board.fence()?;
        let others = 1..self.board.size();
        let mut hosts = Vec::new();
        for rank in others.clone() {
            hosts.push(self.board.get(rank, HOST)?);
        }
        let plan = plan(&host(), &hosts, insecure);
        self.is_over = true;
        let words = plan.as_ref().map_or(OFF, |(words, _)| words);
        let places = announce(&mut *self.board, words);
        let (_, keys) = plan?;
        let mut addresses = vec![Address::Rank { number: 0, places: Vec::new() }];
        for (rank, words) in others.zip(places?) {
            let places = places_in(&words).map_err(|why| format!("rank {rank}: {why}"))?;
            addresses.push(Address::Rank { number: rank, places });
        }
        Ok(Gathered { addresses, keys })
    }

    /// For the other ranks: listens, publishes the address, and serves one run.
    ///
    /// # Errors
    /// The ranks do not find each other, or rank 0 does not come.
    pub fn attend(mut self, mut settings: Settings) -> Result<Work, String> {
        self.is_over = true;
        self.board.put(HOST, &host())?;
        self.board.fence()?;
        self.board.fence()?;
        let plan = self.board.get(0, PLAN)?;
        let listening = match plan.as_str() {
            OFF => Err("called off".to_owned()),
            SOCKETS => Place::on_socket(),
            TCP => Place::on_port(None),
            other => match other.strip_prefix(KEYS) {
                Some(keys) => Place::on_port(Some(keys)),
                None => Err("rank 0 wants what this one does not know; is it another version?".to_owned()),
            },
        };
        let words = match &listening {
            Ok(place) => place.words.clone(),
            Err(why) => format!("{NONE}{why}"),
        };
        self.board.put(PLACE, &words)?;
        self.board.fence()?;
        // This process no longer needs the launcher's library.
        drop(self);
        match listening {
            Err(_) if plan == OFF => Ok(Work::CalledOff),
            Err(why) => Err(why),
            Ok(place) => {
                settings.keys = place.keys.clone();
                place.agent.serve_one(settings, PATIENCE).map(|()| Work::Served)
            }
        }
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        if !self.is_over {
            // The others learn of this only on the board. If the launcher fails, they learn of that, too.
            let _ = self.board.put(HOST, &host()).and_then(|()| self.board.fence());
            let _ = announce(&mut *self.board, OFF);
        }
    }
}

/// Announces the plan. Returns the addresses of the other ranks.
fn announce(board: &mut dyn Board, plan: &str) -> Result<Vec<String>, String> {
    board.put(PLAN, plan)?;
    board.fence()?;
    board.fence()?;
    (1..board.size()).map(|rank| board.get(rank, PLACE)).collect()
}

/// How the ranks on these machines talk to rank 0 on this one: the plan for the board, and rank 0's own keys.
fn plan(own: &str, hosts: &[String], insecure: bool) -> Result<(String, Option<Keys>), String> {
    if hosts.iter().all(|host| host == own) {
        return Ok((SOCKETS.to_owned(), None));
    }
    if insecure {
        return Ok((TCP.to_owned(), None));
    }
    // The authority is not kept: it issues no other keys, and these end with the run.
    let directory = private_directory()?;
    let made = keys::home::make(&directory.0, DAYS, SystemTime::now());
    let [_, coordinator, agent] = made.map_err(|why| format!("keys for this run: {why}"))?;
    let words = fs::read_to_string(&agent.file).map_err(|error| format!("keys for this run: {error}"))?;
    Ok((KEYS.to_owned() + &words, Some(coordinator)))
}

/// A temporary directory that only this user can read.
struct Private(PathBuf);

impl Drop for Private {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn private_directory() -> Result<Private, String> {
    let name = format!("iolite-rank-{}-{:x}", std::process::id(), iolite_os::time::monotonic_ns());
    let directory = std::env::temp_dir().join(name);
    let made = fs::DirBuilder::new().mode(0o700).create(&directory);
    made.map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(Private(directory))
}

/// Identifies this machine until it is rebooted, as seen from this process's namespaces.
fn host() -> String {
    format!("{} {} {}", machine_identity(), user::own(), machine_name())
}

/// The places that a rank has written.
fn places_in(words: &str) -> Result<Vec<Address>, String> {
    if let Some(why) = words.strip_prefix(NONE) {
        return Err(why.to_owned());
    }
    let places: Vec<Address> = words.lines().map(Address::parse).collect::<Result<_, _>>()?;
    match places.iter().all(|place| matches!(place, Address::Socket(_) | Address::Port { .. })) {
        true if !places.is_empty() => Ok(places),
        _ => Err(format!("{words:?} is not a place")),
    }
}

/// The address of a rank.
struct Place {
    agent: Agent,
    /// For rank 0, one address per line.
    words: String,
    /// The file of its keys.
    keys: Option<PathBuf>,
    /// Holds its socket, or its keys.
    _directory: Private,
}

impl Place {
    fn on_socket() -> Result<Place, String> {
        let directory = private_directory()?;
        let address = Address::Socket(directory.0.join("s"));
        let agent = Agent::listen(&address)?;
        Ok(Place { agent, words: address.to_string(), keys: None, _directory: directory })
    }

    fn on_port(keys: Option<&str>) -> Result<Place, String> {
        let directory = private_directory()?;
        let file = keys.map(|keys| (directory.0.join(Role::Agent.file_name()), keys));
        if let Some((file, keys)) = &file {
            let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
            let written = opened.and_then(|mut file| file.write_all(keys.as_bytes()));
            written.map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let any = |six| Address::Port { host: String::new(), port: 0, six };
        // If the machine has IPv6, such a socket accepts IPv4 as well.
        let agent = Agent::listen(&any(Some(true))).or_else(|_| Agent::listen(&any(None)))?;
        let port = agent.place().rsplit(',').next().unwrap_or_default().to_owned();
        let mut own = user::own_addresses();
        if own.iter().any(|address| !address.is_loopback()) {
            own.retain(|address| !address.is_loopback());
        }
        let places = own.iter().map(|address| format!("{address},{port}"));
        let words = places.collect::<Vec<_>>().join("\n");
        Ok(Place { words, agent, keys: file.map(|(file, _)| file), _directory: directory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_one_machine_use_sockets() {
        let own = "boot mnt 0 one".to_owned();
        let words = |hosts: &[String], insecure| plan(&own, hosts, insecure).unwrap();
        assert_eq!(words(&[own.clone(), own.clone()], false).0, SOCKETS);
        assert_eq!(words(&[], false).0, SOCKETS);
        let other = own.replace("one", "two");
        assert_eq!(words(&[own.clone(), other.clone()], true).0, TCP);
        // The agents get the key of agents, and rank 0 keeps its own.
        let (words, keys) = words(&[own.clone(), other], false);
        let keys = keys.unwrap();
        assert_eq!(keys.role, Role::Coordinator);
        assert!(words.starts_with(KEYS) && !keys.file.exists(), "{words}");
        let place = Place::on_port(words.strip_prefix(KEYS)).unwrap();
        let file = place.keys.clone().unwrap();
        let agent = Keys::read(&file, Role::Agent).unwrap();
        assert_eq!(agent.authority_id(), keys.authority_id());
        drop(place);
        assert!(!file.exists());
    }

    #[test]
    fn places_of_ranks() {
        assert_eq!(places_in("sock:/tmp/s"), Ok(vec![Address::Socket("/tmp/s".into())]));
        assert_eq!(places_in("10.0.0.1,7\n::1,7").unwrap().len(), 2);
        assert_eq!(places_in("none:no room"), Err("no room".to_owned()));
        for wrong in ["", "ssh:one", "a b"] {
            assert!(places_in(wrong).is_err(), "{wrong}");
        }
    }
}
