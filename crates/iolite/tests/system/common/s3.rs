//! An S3 server that any subcommand can use: MinIO where it is installed, otherwise the server of the tests.

use iolite_testing::{Minio, ObjectServer};
use std::path::Path;

pub struct S3 {
    minio: Option<Minio>,
    own: ObjectServer,
    url: String,
}

impl S3 {
    /// Starts it with its data below this directory.
    pub fn start(dir: &Path) -> S3 {
        let minio = Minio::start(&dir.join("minio"), false).ok();
        let own = ObjectServer::start();
        let url = format!("http://{}", minio.as_ref().map_or_else(|| own.host(), Minio::host));
        S3 { minio, own, url }
    }

    /// The variables by which programs find it.
    pub fn environment(&self) -> [(&str, &str); 4] {
        environment(&self.url)
    }

    /// The number of its objects.
    pub fn count(&self) -> usize {
        self.minio.as_ref().map_or_else(|| self.own.names().len(), Minio::count)
    }

    /// Lets its bucket keep versions from now on.
    pub fn keep_versions(&self) -> Result<(), String> {
        self.own.keep_versions();
        self.minio.as_ref().map_or(Ok(()), Minio::keep_versions)
    }

    /// How many versions its bucket has, marks of removals included.
    pub fn versions(&self) -> usize {
        self.minio.as_ref().map_or_else(|| self.own.versions().len(), |minio| minio.versions("bkt"))
    }

    /// The number of uploads that were begun and neither completed nor removed.
    pub fn uploads(&self) -> usize {
        self.minio.as_ref().map_or_else(|| self.own.uploads(), Minio::uploads)
    }
}

/// The variables by which programs find the server with this URL.
pub fn environment(url: &str) -> [(&str, &str); 4] {
    [
        ("AWS_ENDPOINT_URL", url),
        ("AWS_ACCESS_KEY_ID", Minio::ID),
        ("AWS_SECRET_ACCESS_KEY", Minio::SECRET),
        ("AWS_REGION", "eu-test-1"),
    ]
}
