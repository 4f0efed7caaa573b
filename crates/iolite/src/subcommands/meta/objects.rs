//! The objects of a bucket in the place of files.

use crate::messages::complain;
use crate::subcommands::test::remote::{Layout, Remote, shown};
use iolite_options::Name;
use iolite_options::commands::Asked;
use iolite_procedures::meta::{OBJECTS, Phase, Setup};

/// How the names of all tests begin, behind the prefix of the URL.
const OWN: &str = "iolite-meta/";
/// Options that are about directories.
const OF_DIRECTORIES: [&str; 6] = ["depth", "breadth", "verify", "preset", "data", "mpi"];

/// A bucket, in which the objects of this test are removed when this value is dropped.
pub struct Bucket {
    /// Its URL, without secrets.
    pub name: String,
    remote: Remote,
    is_used: bool,
}

impl Bucket {
    /// The bucket that a word names; `None` = it is no URL.
    pub fn of(asked: &Asked, word: &str) -> Result<Option<Bucket>, String> {
        let Some(remote) = Remote::of(word) else { return Ok(None) };
        let name = shown(word);
        let remote = remote.map_err(|why| format!("{name}: {why}"))?;
        if remote.layout != Layout::Objects || !remote.is_s3 {
            return Err(format!("{name}: name a directory, or a bucket: s3://BUCKET/PREFIX"));
        }
        if let Some(option) = OF_DIRECTORIES.into_iter().find(|option| asked.has(option)) {
            return Err(format!("--{option}: that is for directories, and {name} has objects"));
        }
        Ok(Some(Bucket { name, remote, is_used: false }))
    }

    /// What stands before all names of this test.
    fn own(&self) -> String {
        format!("{}{OWN}{}", self.remote.place, self.remote.number)
    }

    /// The setup for objects.
    pub fn setup(&self, asked: &Asked, mut setup: Setup) -> Result<Setup, String> {
        if !asked.has("phases") {
            setup.phases = OBJECTS.to_vec();
        }
        if let Some(phase) = setup.phases.iter().find(|phase| !OBJECTS.contains(phase)) {
            let known = OBJECTS.map(Phase::name).join(", ");
            return Err(format!("--phases: {} is not one of those of objects: {known}", phase.name()));
        }
        if setup.size == 0 {
            return Err(
                "--size=0: the objects of one name are told apart by their bytes; at least 1".to_owned()
            );
        }
        let options = self.remote.options.iter().map(|(option, value)| ((*option).to_owned(), value.clone()));
        let engine = ("ioengine".to_owned(), self.remote.engine.to_owned());
        setup.bucket = Some(std::iter::once(engine).chain(options).collect());
        setup.directory = self.own();
        Ok(setup)
    }

    /// Checks that the server answers. From now on, names of this test may be there.
    pub fn begin(&mut self) -> Result<(), String> {
        self.remote.check().map_err(|why| format!("{}: {why}", self.name))?;
        self.is_used = true;
        Ok(())
    }

    /// Removes what killed tests have left.
    pub fn clean(&self) -> Result<String, String> {
        let start = format!("{}{OWN}", self.remote.place);
        let removed =
            self.remote.remove_all(&start).map_err(|why| format!("--clean: {}: {why}", self.name))?;
        Ok(format!("{}: {removed} objects removed whose names begin with {start}\n", self.name))
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        if self.is_used
            && let Err(why) = self.remote.remove_all(&format!("{}/", self.own()))
        {
            let words = format!(
                "what the test has made is left there ({why}); iolite meta --clean {} removes it",
                self.name
            );
            complain(Name::Iolite, &format_args!("meta: {}: {words}", self.name));
        }
    }
}
