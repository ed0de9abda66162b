/** @file vis_ms_lock.h  (private to the C++ files of io/)
 *  Locks of casacore. Programs that use casacore lock a table in its file table.lock
 * while they change or read it. tessera opens tables without locks, since many ranks
 * read one set; it waits until nobody changes a table before it opens that, and holds
 * the lock while it changes a table itself.
 */
#ifndef VIS_MS_LOCK_H
#define VIS_MS_LOCK_H

#include <casacore/casa/IO/LockFile.h>
#include <casacore/tables/Tables/Table.h>

#include <memory>
#include <string>

namespace tess_ms
{

/** Wait until no other program has the write lock of the table in the folder `path`,
 * for as long as tess_vis_set_lock_timeout() says. A line tells for whom. Throws
 * Failure (TESS_ERR_IO) when the time is over. A table that cannot be locked is not
 * waited for. */
void wait_until_readable(const std::string &path);

/** The write lock of a table. Its holder lets it go when it ends. */
class WriteLock
{
  public:
    WriteLock() = default;
    WriteLock(const WriteLock &) = delete;
    WriteLock &operator=(const WriteLock &) = delete;
    ~WriteLock();

    /** Wait for the lock as wait_until_readable() does, also for programs that read.
     * Where the table cannot be locked, nothing is. Throws Failure. */
    void take(const std::string &path);

    /** Take the lock if that is possible within a second. Returns whether it was. */
    bool take_now(const std::string &path);

    /** Tell programs that have the table open that it has changed, so that they read
     * its description again before they write it. `columns`: these have changed as
     * well. `table` is as it has been flushed. */
    void note_change(const casacore::Table &table, bool columns);

  private:
    bool hold(const std::string &path);
    void stop_using();

    std::string path_;
    std::unique_ptr<casacore::LockFile> file_;
    int held_ = -1; /* the file of locks, open and locked */
};

} // namespace tess_ms

#endif
