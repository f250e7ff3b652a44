//! Writing results: whole or not at all.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes `bytes` to `path`; `-` is standard output.
///
/// A file is written beside its place and renamed, so that no half-written file stays; one that was
/// there keeps its permissions, and a link its target's place. Devices and pipes are written to.
pub fn write(path: &str, bytes: &[u8]) -> anyhow::Result<()> {
    if path == "-" {
        let mut out = io::stdout().lock();
        return out
            .write_all(bytes)
            .and_then(|()| out.flush())
            .map_err(|e| anyhow::anyhow!("cannot write to standard output: {e}"));
    }
    write_file(Path::new(path), bytes).map_err(|e| anyhow::anyhow!("cannot write {path}: {e}"))
}

/// [`write`] for a path that is always a file.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if there.is_file() => replace(&fs::canonicalize(path)?, bytes, Some(&there)),
        Ok(_) => File::options().write(true).open(path)?.write_all(bytes),
        Err(_) => replace(&end_of_links(path)?, bytes, None),
    }
}

/// Where a path leads that names nothing yet: a link may stand there before its target exists.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    match fs::read_link(path) {
        Ok(to) => Ok(folder_of(path).join(to)),
        Err(_) => Ok(path.to_owned()),
    }
}

/// Puts a new file in the place of `path`, with the permissions of the one that is `there`.
fn replace(path: &Path, bytes: &[u8], there: Option<&Metadata>) -> io::Result<()> {
    let unnamed = |e: tempfile::PersistError| e.error;
    let mut file = builder().tempfile_in(folder_of(path)).map_err(bare)?;
    file.write_all(bytes).map_err(bare)?;
    if let Some(there) = there {
        file.as_file().set_permissions(there.permissions())?;
    }
    file.persist(path).map_err(unnamed)?;
    Ok(())
}

/// The error without the name of the temporary file, which would say nothing to anybody.
fn bare(error: io::Error) -> io::Error {
    let text = error.to_string();
    match text.find(" at path ") {
        Some(end) => io::Error::new(error.kind(), text[..end].to_owned()),
        None => error,
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// Temporary files are private by default; results get the permissions that any new file gets.
fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_written_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.json");
        write(path.to_str().unwrap(), b"first").unwrap();
        write(path.to_str().unwrap(), b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failure_names_the_path_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none/plan.json");
        let error = write(path.to_str().unwrap(), b"x").unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot write {}: ", path.display())),
            "{error}"
        );
        assert!(!error.contains(" at path "), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, b"old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        write(link.to_str().unwrap(), b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o640
        );
        let open = dir.path().join("open");
        symlink("not yet", &open).unwrap();
        write(open.to_str().unwrap(), b"made").unwrap();
        assert_eq!(fs::read(dir.path().join("not yet")).unwrap(), b"made");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_written_to_and_stays() {
        use std::os::unix::fs::FileTypeExt;
        write("/dev/null", b"gone").unwrap();
        assert!(
            fs::metadata("/dev/null")
                .unwrap()
                .file_type()
                .is_char_device()
        );
        assert!(
            write("/dev/full", b"x")
                .unwrap_err()
                .to_string()
                .contains("/dev/full")
        );
    }
}
