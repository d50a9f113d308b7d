//! What is kept, for whom, and what makes room.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use super::*;
use crate::oci::{PullLimits, RegistrySettings};

const PLACE: &str = "registry.example/team/app";
/// Two small files.
const ROOM: u64 = 2 * BLOCK;

fn digest(content: &[u8]) -> ContentDigest {
    ContentDigest::of(Algorithm::Sha256, content)
}

fn open(folder: &tempfile::TempDir) -> ContentCache {
    ContentCache::open(folder.path(), ROOM).unwrap()
}

/// Asks for a content of a place; whether it had to be fetched.
async fn fetched_from(cache: &ContentCache, place: &str, content: &[u8]) -> bool {
    let count = AtomicUsize::new(0);
    let fetch = || async {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(content.to_vec().into())
    };
    let blob = Blob {
        place,
        digest: &digest(content),
        asker: &digest(b"asker"),
        sources: Arc::default(),
        tenant: &None,
        client: None,
    };
    let got = cache.blob(&blob, fetch).await.unwrap();
    assert_eq!(got.bytes().as_slice(), content);
    count.into_inner() == 1
}

async fn fetched(cache: &ContentCache, content: &[u8]) -> bool {
    fetched_from(cache, PLACE, content).await
}

/// The file of a content, of [`PLACE`].
fn path(cache: &ContentCache, content: &[u8]) -> PathBuf {
    let (digest, asker) = (digest(content), digest(b"asker"));
    cache.folder.join(
        Blob { place: PLACE, digest: &digest, asker: &asker, sources: Arc::default(), tenant: &None, client: None }
            .file(),
    )
}

/// The operator keeps there which calls are under way.
#[tokio::test]
async fn c_283_what_lies_in_a_folder_below_the_cache_is_never_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("calls");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("calls-under-way"), vec![0; 3 * ROOM as usize]).unwrap();
    let cache = open(&folder);
    assert!(fetched(&cache, b"abc").await);
    drop(cache);
    let cache = open(&folder);
    assert!(!fetched(&cache, b"abc").await, "nor does it take room");
    assert!(below.join("calls-under-way").is_file());
}

#[tokio::test]
async fn a_blob_is_fetched_once_also_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&folder);
    assert!(fetched(&cache, b"abc").await);
    assert!(!fetched(&cache, b"abc").await);
    assert!(!fetched(&open(&folder), b"abc").await);
}

#[tokio::test]
async fn a_blob_of_one_place_is_not_there_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&folder);
    assert!(fetched(&cache, b"private").await);
    assert!(fetched_from(&cache, "evil.example/app", b"private").await);
    let blob = Blob {
        place: "evil.example/b",
        digest: &digest(b"private"),
        asker: &digest(b"asker"),
        sources: Arc::default(),
        tenant: &None,
        client: None,
    };
    let nothing = Fault::invalid(Code::ConfigurationProblem, "there is none");
    let message = cache.blob(&blob, || async { Err(nothing.clone()) }).await.map(ReservedContent::into_bytes);
    assert_eq!(message, Err(nothing.clone()));
}

#[tokio::test]
async fn an_error_is_told_to_those_with_the_same_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&folder);
    let ask = |asker: &'static [u8]| {
        let cache = &cache;
        async move {
            let (wanted, asker_digest) = (digest(b"x"), digest(asker));
            let blob = Blob {
                place: PLACE,
                digest: &wanted,
                asker: &asker_digest,
                sources: Arc::default(),
                tenant: &None,
                client: None,
            };
            let fetch = || async {
                tokio::task::yield_now().await;
                Err(Fault::invalid(Code::Unauthorized, String::from_utf8_lossy(asker)))
            };
            cache.blob(&blob, fetch).await.unwrap_err().to_string()
        }
    };
    let message = tokio::join!(ask(b"Secret ours"), ask(b"Secret theirs"), ask(b"Secret ours"));
    assert_eq!(message, ("Secret ours".to_owned(), "Secret theirs".to_owned(), "Secret ours".to_owned()));
}

#[tokio::test]
async fn a_torn_or_altered_file_is_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&folder);
    assert!(fetched(&cache, b"abcdef").await);
    for torn in [&b"abc"[..], b"abcdeX"] {
        fs::write(path(&cache, b"abcdef"), torn).unwrap();
        assert!(fetched(&cache, b"abcdef").await);
        assert!(!fetched(&cache, b"abcdef").await);
    }
    fs::remove_file(path(&cache, b"abcdef")).unwrap();
    assert!(fetched(&cache, b"abcdef").await);
}

#[tokio::test]
async fn what_was_used_longest_ago_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&folder);
    assert!(fetched(&cache, b"one").await);
    assert!(fetched(&cache, b"two").await);
    assert!(!fetched(&cache, b"one").await);
    assert!(fetched(&cache, b"three").await);
    assert!(!path(&cache, b"two").exists());
    assert!(!fetched(&cache, b"one").await);
    assert!(fetched(&cache, &[7; ROOM as usize + 1]).await);
    assert!(!fetched(&cache, b"one").await, "what never fits pushes nothing out");
    drop(cache);
    let smaller = ContentCache::open(folder.path(), BLOCK).unwrap();
    assert!(!fetched(&smaller, b"one").await, "a smaller bound keeps what was used last");
    let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    left.sort();
    let mut expected = vec![path(&smaller, b"one"), folder.path().join("key"), folder.path().join("unfinished")];
    expected.sort();
    assert_eq!(left, expected);
}

#[tokio::test]
async fn what_a_crash_left_is_removed_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(&folder));
    fs::write(folder.path().join("unfinished").join("1-1"), "half").unwrap();
    drop(open(&folder));
    assert_eq!(fs::read_dir(folder.path().join("unfinished")).unwrap().count(), 0);
}

#[tokio::test]
async fn another_content_than_its_digest_is_refused_and_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&folder);
    let blob = Blob {
        place: PLACE,
        digest: &digest(b"abc"),
        asker: &digest(b"asker"),
        sources: Arc::default(),
        tenant: &None,
        client: None,
    };
    let message = cache.blob(&blob, || async { Ok(b"evil".to_vec().into()) }).await.unwrap_err();
    assert_eq!(
        message.to_string(),
        format!("the blob {} has another content: its digest is {}; push it again", digest(b"abc"), digest(b"evil"))
    );
    assert!(fetched(&cache, b"abc").await);
}

#[tokio::test]
async fn an_answer_is_for_the_same_question_and_credentials_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (digest(b"our password"), digest(b"another"));
    let cache = open(&folder);
    cache.keep_answer("a:1", &ours, b"{}").await;
    drop(cache);
    let cache = open(&folder);
    assert_eq!(cache.answer("a:1", &ours).await, Some(b"{}".to_vec()));
    assert_eq!(cache.answer("a:1", &theirs).await, None);
    assert_eq!(cache.answer("a:2", &ours).await, None);
    cache.forget_answer("a:1", &ours);
    assert_eq!(cache.answer("a:1", &ours).await, None);
}

#[tokio::test]
async fn an_altered_answer_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&folder);
    cache.keep_answer("a:1", &digest(b"x"), b"{}").await;
    let file = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.extension().is_some_and(|end| end == "answer")).unwrap();
    let whole = fs::read(&file).unwrap();
    for torn in [&whole[..whole.len() - 1], &whole[..10], &[whole.as_slice(), b" "].concat()] {
        cache.keep_answer("a:1", &digest(b"x"), b"{}").await;
        assert_eq!(cache.answer("a:1", &digest(b"x")).await, Some(b"{}".to_vec()));
        fs::write(&file, torn).unwrap();
        assert_eq!(cache.answer("a:1", &digest(b"x")).await, None);
    }
}

#[test]
fn nobody_else_on_this_machine_reads_the_cache() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    drop(ContentCache::open(&folder.path().join("cache"), ROOM).unwrap());
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("cache"), mode("cache/key")], [0o700, 0o600]);
}

#[tokio::test]
async fn c_133_a_namespace_waits_for_no_fetch_of_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&folder);
    let (digest, asker, of_a, of_b) = (digest(b"abc"), digest(b"asker"), Some("a".into()), Some("b".into()));
    let blob =
        |tenant| Blob { place: PLACE, digest: &digest, asker: &asker, sources: Arc::default(), tenant, client: None };
    let (first, second) = (blob(&of_a), blob(&of_b));
    let mut slow = Box::pin(cache.blob(&first, std::future::pending));
    assert!(futures::poll!(&mut slow).is_pending());
    let found = cache.blob(&second, || async { Ok(b"abc".to_vec().into()) }).await;
    assert_eq!(found.map(ReservedContent::into_vec), Ok(b"abc".to_vec()));
}

#[test]
fn c_320_the_oldest_files_of_many_make_room_without_a_look_at_the_others() {
    let mut index = CacheIndex::default();
    for number in 0..200_000 {
        index.add(format!("f{number}"), 1);
    }
    index.use_now("f0").unwrap();
    index.add("f1".to_owned(), 2 * BLOCK);
    let gone = index.make_room(2 * BLOCK + 2 * BLOCK);
    assert_eq!((gone.len(), gone.first().map(String::as_str)), (199_997, Some("f2")));
    let left: Vec<&str> = index.files.keys().map(String::as_str).collect();
    assert_eq!((left, index.total, index.by_use.len()), (vec!["f0", "f1", "f199999"], 4 * BLOCK, 3));
    assert_eq!(index.make_room(4 * BLOCK), [""; 0]);
}

#[tokio::test]
async fn c_133_what_is_read_from_disk_waits_for_its_room_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(&folder);
    assert!(fetched(&cache, b"abc").await);
    let limits = PullLimits { at_once: BLOCK, wait: Duration::from_millis(100), ..PullLimits::default() };
    let client = Client::new(RegistrySettings { limits, ..RegistrySettings::default() }).unwrap();
    let (digest, asker, of_a, of_b) = (digest(b"abc"), digest(b"asker"), Some("a".into()), Some("b".into()));
    let read = async |tenant| {
        let (sources, client) = (Arc::default(), Some(&client));
        let blob = Blob { place: PLACE, digest: &digest, asker: &asker, sources, tenant, client };
        cache.blob(&blob, || async { Err(Fault::invalid(Code::ConfigurationProblem, "it is on disk")) }).await
    };
    let held = read(&of_a).await.unwrap();
    let message = read(&of_b).await.unwrap_err().to_string();
    assert_eq!(
        message,
        format!(
            "cannot get the blob {digest}: there was no room for it within 0 s, for others are on their way; it is asked for \
             again"
        )
    );
    drop(held);
    assert_eq!(read(&of_b).await.map(ReservedContent::into_vec), Ok(b"abc".to_vec()));
}
