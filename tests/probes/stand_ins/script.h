/* What a stand-in is told to answer: a text file of lines "KEY VALUE", VALUE to the end of the line.

   Before the first line "device" a line is about the library, after it about that device. A line

       fail FUNCTION CODE

   makes the function return CODE, or "hang" or "crash", in its section: for all devices, or for one.
   A value that is not given is "not supported". */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_LINES 4096
#define MOST_DEVICES 64

typedef struct {
    char *key;
    char *value;
} Line;

typedef struct {
    Line *lines;
    int count;
} Section;

static Line all_lines[MOST_LINES];
static Section library;
static Section devices[MOST_DEVICES];
static int device_count = -1;

/* Read the file that the environment variable names, once. */
static void read_script(const char *variable)
{
    if (device_count >= 0)
        return;
    device_count = 0;
    const char *path = getenv(variable);
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file) {
        fprintf(stderr, "%s names no file\n", variable);
        abort();
    }
    char line[8192];
    int used = 0;
    Section *section = &library;
    section->lines = all_lines;
    while (fgets(line, sizeof line, file) && used < MOST_LINES) {
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "device") == 0 && device_count < MOST_DEVICES) {
            section = &devices[device_count++];
            section->lines = all_lines + used;
            continue;
        }
        char *space = strchr(line, ' ');
        if (!space)
            continue;
        *space = 0;
        all_lines[used].key = strdup(line);
        all_lines[used].value = strdup(space + 1);
        used++;
        section->count++;
    }
    fclose(file);
}

/* Return the n-th value of the key in the section, NULL where there is none. */
static const char *text_of(const Section *section, const char *key, int n)
{
    for (int i = 0; section && i < section->count; i++)
        if (strcmp(section->lines[i].key, key) == 0 && n-- == 0)
            return section->lines[i].value;
    return NULL;
}

static unsigned long long number_or(const Section *section, const char *key, unsigned long long otherwise)
{
    const char *text = text_of(section, key, 0);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

/* Return what the section tells the function to fail with, 0 for nothing. It may not return at all. */
static int failure_in(const Section *section, const char *function)
{
    const char *text;
    size_t length = strlen(function);
    for (int n = 0; (text = text_of(section, "fail", n)); n++) {
        if (strncmp(text, function, length) != 0 || text[length] != ' ')
            continue;
        const char *outcome = text + length + 1;
        if (strcmp(outcome, "hang") == 0)
            for (;;)
                pause();
        if (strcmp(outcome, "crash") == 0)
            raise(SIGSEGV);
        return atoi(outcome);
    }
    return 0;
}

static int failure_of(const Section *section, const char *function)
{
    int code = failure_in(&library, function);
    return code || !section ? code : failure_in(section, function);
}
