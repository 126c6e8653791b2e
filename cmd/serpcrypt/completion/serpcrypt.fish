# Completion of serpcrypt's command line in fish.

function __serpcrypt_answer
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    serpcrypt complete -- $words[2..-1] "$word" 2>/dev/null
end

function __serpcrypt_wants_files
    __serpcrypt_answer | string match -q -- ':files*'
end

function __serpcrypt_words
    set -l word (commandline -ct)
    set -l head (string match -r -- '^--[^=]*=' $word)
    for line in (__serpcrypt_answer)
        switch $line
            case ':files*'
            case ':folders*'
                __fish_complete_directories "$word"
            case '*'
                printf '%s\n' "$head$line"
        end
    end
end

complete -c serpcrypt -f
complete -c serpcrypt -n __serpcrypt_wants_files -F
complete -c serpcrypt -k -a '(__serpcrypt_words)'
