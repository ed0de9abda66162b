/** @file out_name.h  (private to base/)
 *  Names of unfinished files. A name says which process of which host makes the file.
 *  Unfinished files are removed by that name, once nobody holds their lock.
 */
#ifndef OUT_NAME_H
#define OUT_NAME_H

#include <stdbool.h>

/** The most characters that such a name has more than `path`: for the host, for a
 * process of up to ten digits, and for attempts below 100. */
enum { OUT_NAME_MOST_ADDED = sizeof ".tessera-01234567-0123456789-99.tmp" - 1 };

/** Make the name under which this process writes a file that will be called `path`.
 * `attempt` distinguishes names for the same path. temp[TESS_OUT_FILE_NAME]. Returns
 * false if the name is too long. Local. */
bool out_name_make(const char *path, int attempt, char *temp);

/** Remove a file, a link, or a folder with its contents. It makes only system calls, so
 * a signal handler may call it. Local. */
void out_name_remove(int folder, const char *name);

/** Note the temporary name `path` for removal by signals, with a lock that stays until
 * it is forgotten: that of the open file `fd`, -1 for none. Local. */
void out_name_note(const char *path, int fd);

/** Whether this process has noted a file of this name, in whatever folder. Local. */
bool out_name_is_noted(const char *name);

/** From now on SIGUSR1 removes the unfinished files and ends the process, as the
 * signals of tess_out_catch_signals() do. `tells`: a line says so. Local. */
void out_signal_catch_user(bool tells);

#endif
