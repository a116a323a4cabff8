/* A player of a window vector: windows FROM < FILE. From row FROM on, its windows are one segment larger. */
#include "../readers/windows.h"

int main(int arguments, char **argument)
{
    static char file[1 << 20];
    static struct window kernel[10000], ours[10000];
    char difference[160];
    if (arguments != 2 || fread(file, 1, sizeof(file) - 1, stdin) == 0)
        return 2;
    size_t count = windows_read(file, kernel, 10000);
    for (size_t n = 0; n < count; n++) {
        ours[n] = kernel[n];
        ours[n].cwnd += n >= strtoull(argument[1], NULL, 10);
    }
    windows_check(kernel, count, ours, count, UINT64_MAX, difference);
    printf("%zu %s\n", count, difference);
    return 0;
}
